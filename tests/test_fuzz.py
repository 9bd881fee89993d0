"""Bad input for every public function: a sample from a fixed seed."""

from fuzz import hostile


def test_bad_input_gets_one_sentence():
    count, wrong, _ = hostile.search(seed=2026, minutes=1.0, cases=2000)
    assert count > 100
    assert not wrong


def test_the_good_calls_are_good():
    assert not [f for f, arguments in hostile.GOOD.items() if hostile.outcome(f, arguments)]
