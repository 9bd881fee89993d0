"""The searches for wrong numbers and raw errors: past failures, and a sample from a fixed seed."""

import dataclasses
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq

import fastpriv as fp
from fastpriv.design.exact.solution import ExactSolution
from fuzz import balls, claims, hostile, optima, plain, programs, specs
from fuzz.search import case_of, corpus, instance, search, searched
from oracles import fraction_programs, nums
from oracles.individual import group_capacity


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["question"])
def test_past_failures_stay_mended(case):
    assert claims.answer(case) is None


@pytest.mark.search(every=10)
@pytest.mark.parametrize("question", claims.QUESTIONS)
def test_answers_are_on_the_right_side_of_the_truth(question):
    count = 10 * claims.QUESTIONS[question].weight  # fewer of those that take long
    broken = [claims.answer(case_of(2026, number, question)) for number in range(count)]
    assert not [str(violation) for violation in broken if violation]


@pytest.mark.search(every=5)
@pytest.mark.parametrize("question", plain.TRUTHS)
def test_the_references_agree(question):
    # The plain ones take long where digits are many: a few cases of moderate numbers.
    drawn = (case_of(2027, 12 * number, question) for number in range(60))
    cases = [case for case in drawn if specs.least_number(case) > 1e-20][:4]
    assert cases
    broken = [claims.answer(case, check=True) for case in cases]
    assert not [str(violation) for violation in broken if violation]


@pytest.mark.search(every=10)
@pytest.mark.parametrize("question", claims.QUESTIONS)
def test_a_wrong_answer_is_noticed(monkeypatch, question):
    asked = claims.QUESTIONS[question]
    # of strong data processing only lower bounds are known, by a few laws
    share = 0.5 if question == "sdpi_constant" else 1e-6
    wrong = dataclasses.replace(asked, ask=lambda c: _lowered(asked.ask(c), share))
    monkeypatch.setitem(claims.QUESTIONS, question, wrong)
    assert any(claims.answer(case_of(3, 12 * number, question)) for number in range(60))


def _lowered(given, share):
    """Return an answer that is a little too low."""
    if isinstance(given, fp.Solution):
        return dataclasses.replace(given, value=given.value * (1.0 - share), level=0.0)
    if isinstance(given, ExactSolution):
        return dataclasses.replace(given, value=given.value * (1 - Fraction(share)))
    if isinstance(given, fp.Bracket):
        return fp.Bracket(0.0, given.upper * (1.0 - share))
    return given * (1.0 - share)


@pytest.mark.parametrize("question", ["channel_capacity", "group_capacity", "composed_epsilon"])
def test_a_lower_end_that_is_too_high_is_noticed(monkeypatch, question):
    asked = claims.QUESTIONS[question]

    def ask(case):
        given = asked.ask(case)
        return fp.Bracket(2.0 * given.upper, math.inf)

    monkeypatch.setitem(claims.QUESTIONS, question, dataclasses.replace(asked, ask=ask))
    assert any(claims.answer(case_of(3, 12 * number, question)) for number in range(60))


@pytest.mark.slow(but=["solve_pd_i", "solve_pd_pml"])
@pytest.mark.parametrize("question", ["solve_pd_dp", "solve_pd_i", "solve_pd_pml", "solve_pd_mip"])
def test_a_bound_above_the_optimum_is_noticed(monkeypatch, question):
    asked = claims.QUESTIONS[question]

    def ask(case):
        given = asked.ask(case)
        return dataclasses.replace(given, bound=given.value * (1.0 + 1e-3))

    monkeypatch.setitem(claims.QUESTIONS, question, dataclasses.replace(asked, ask=ask))
    kinds = [claims.answer(case_of(3, 12 * number, question)) for number in range(60)]
    assert any(v and "bound above the optimum" in v.kind for v in kinds)


def test_cases_depend_on_their_number_alone():
    ahead = case_of(7, 1000)
    instance.cache_clear()
    assert json.dumps(case_of(7, 1000)) == json.dumps(ahead)
    asked, _, _ = search(7, 1.0, 48, worker=1, workers=2)
    assert sum(asked.values()) == 24  # the second of two workers: every other bundle


@pytest.mark.slow
def test_two_processes_ask_the_cases_of_one():
    # Processes of their own must find the search in a module, which ``__main__`` is not for them.
    asked, broken, _ = searched(7, 1.0, 48, workers=2)
    assert asked == search(7, 1.0, 48)[0]
    assert asked.total() == 48
    assert broken == {}


@pytest.mark.parametrize("joint", [False, True], ids=["dp", "identifiability"])
@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 2)])
def test_programs_in_fractions_agree_with_the_plain_ones(sizes, joint):
    weights = list(range(2, 2 + int(np.prod(sizes))))
    p = fraction_programs.law(weights)
    ratio = fraction_programs.Fraction(5)
    plainly = fraction_programs.least_distortion(p, list(sizes), ratio, joint)
    ours = optima.least_distortion([fmpq(*v.as_integer_ratio()) for v in p], sizes, fmpq(5), joint)
    assert ours == fmpq(*plainly.as_integer_ratio())


def test_leakage_program_is_the_identity_from_the_rarest_on():
    p = programs.fractions({"kind": "dense", "sizes": [3], "pmf": [0.5, 0.25, 0.25]})
    assert optima.least_leaking(p, (3,), fmpq(4)) == 0
    assert optima.least_leaking(p, (3,), fmpq(1)) == fmpq(1, 2)  # nothing is told


@pytest.mark.parametrize("k", [1, 2])
def test_selections_agree_with_the_plain_list(k):
    rng = np.random.default_rng(4)
    matrix = rng.dirichlet([1.0] * 3, size=6)
    low, high = optima.group_capacity(balls.balls(matrix), (2, 3), k)
    plainly = group_capacity(matrix.tolist(), [2, 3], k)
    assert float(low.mid()) == pytest.approx(plainly[0], rel=1e-6)
    assert float(high.mid()) >= plainly[0] * (1 - 1e-9)


def test_balls_hold_the_plain_truth():
    W, p = [[0.5, 0.25, 0.25], [0.125, 0.875, 0.0]], [0.75, 0.25]
    value = balls.mutual_information(balls.balls(W), [arb(v) for v in p])
    digits = mpmath.nstr(plain.o.mutual_information(nums(W), p), 15)
    assert abs(float(value.mid()) - float(digits)) < 1e-15
    assert value.rad() < 1e-14


@pytest.mark.slow
def test_bad_input_gets_one_sentence():
    count, wrong, _ = hostile.search(seed=2026, minutes=1.0, cases=2000)
    assert count > 100
    assert not wrong


def test_the_good_calls_are_good():
    assert not [f for f, arguments in hostile.GOOD.items() if hostile.outcome(f, arguments)]


#: Classes of answers, and bases of classes: nobody makes them by hand.
_ANSWERS = {
    "AbstractChannel",
    "Distribution",
    "PriorSet",
    "SupportChannel",
    "PrivacyOdometer",
    "Law",
}


def test_bad_input_is_tried_on_every_public_function():
    known = {getattr(function, "__qualname__", "") for function in hostile.GOOD}
    inside = {name for function in hostile.GOOD for name in _names(function)}
    missing = []
    for room in (fp, fp.accounting, fp.mechanisms, fp.gains):
        for name in getattr(room, "__all__", dir(room)):
            thing = getattr(room, name)
            made = isinstance(thing, type) and (
                dataclasses.is_dataclass(thing) or issubclass(thing, BaseException | tuple)
            )
            if callable(thing) and not name.startswith("_") and not made:
                missing += [name] * (thing.__qualname__ not in known and name not in inside)
    assert (
        not set(missing)
        - _ANSWERS
        - {"HiddenMarkov", "TypeChannel", "warm_up", "observe", "PrivacyProfile"}
    )


def _names(function):
    """The names that a function written for one call uses."""
    code = getattr(function, "__code__", None)
    return code.co_names if code and function.__name__ == "<lambda>" else ()


def test_the_simplex_method_keeps_its_equations():
    """At e^eps_X only constant answers are left; an artificial variable must not grow again."""
    p = programs.fractions({"kind": "dense", "pmf": [0.25, 0.25, 0.25, 0.2500000000000001]})
    assert optima.least_distortion(p, (4,), max(p) / min(p), True) == 1 - max(p)
