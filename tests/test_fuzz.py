"""The searches for wrong numbers and raw errors: past failures, and a sample from a fixed seed."""

import pytest

from fuzz import claims, hostile
from fuzz.__main__ import case_of, corpus


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["question"])
def test_past_failures_stay_mended(case):
    assert claims.answer(case) is None


@pytest.mark.parametrize("question", claims.QUESTIONS)
def test_answers_are_on_the_right_side_of_the_truth(question):
    count = 5 * claims.QUESTIONS[question].weight  # fewer of those that take long
    broken = [claims.answer(case_of(2026, number, question)) for number in range(count)]
    assert not [str(violation) for violation in broken if violation]


def test_bad_input_gets_one_sentence():
    count, wrong, _ = hostile.search(seed=2026, minutes=1.0, cases=2000)
    assert count > 100
    assert not wrong


def test_the_good_calls_are_good():
    assert not [f for f, arguments in hostile.GOOD.items() if hostile.outcome(f, arguments)]
