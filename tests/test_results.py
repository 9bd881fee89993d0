"""A bracket as a number: which end it is, how it compares, converts and hashes."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv import results

ENDS = st.floats(0.0, 1e6, allow_nan=False)


def test_the_number_is_the_guaranteed_end():
    assert float(fp.Bracket(0.25, 0.5)) == 0.5
    assert float(fp.Bracket(0.25, 0.5, guaranteed="lower")) == 0.25
    channel = fp.HammingChannel(2, 2, 1.0)
    assert float(fp.individual_capacity(channel)) == fp.individual_capacity(channel).upper
    gained = fp.balance_function(channel, 1.0)
    assert float(gained) == gained.lower < gained.upper


@given(ENDS, ENDS, ENDS)
def test_orders_compare_the_guaranteed_end(a, b, number):
    lower, upper = sorted((a, b))
    bracket = fp.Bracket(lower, upper)
    assert (bracket <= number) == (upper <= number) == (number >= bracket)
    assert (bracket < number) == (upper < number) == (number > bracket)
    assert (bracket >= number) == (upper >= number)
    assert (bracket > number) == (upper > number)
    other = fp.Bracket(0.0, number)
    assert (bracket <= other) == (upper <= number)
    assert max([bracket, other], key=float) in (bracket, other)


@given(ENDS, ENDS)
def test_equality_needs_both_ends(a, b):
    lower, upper = sorted((a, b))
    bracket = fp.Bracket(lower, upper)
    assert bracket == fp.Bracket(lower, upper)
    assert hash(bracket) == hash(fp.Bracket(lower, upper))
    assert (bracket == upper) == (lower == upper)
    if lower == upper:
        assert hash(bracket) == hash(upper)
        assert {bracket: 1}[upper] == 1
        assert bracket == Fraction(upper)


def test_arrays_hold_the_guaranteed_end():
    brackets = [fp.Bracket(0.0, 0.5), fp.Bracket(1.0, math.inf)]
    np.testing.assert_array_equal(np.array(brackets), [0.5, math.inf])
    np.testing.assert_array_equal(np.asarray(brackets, dtype=np.float64), [0.5, math.inf])
    assert np.float64(brackets[0]) == 0.5
    assert np.maximum(brackets[0], 0.25) == 0.5


def test_other_objects_are_neither_equal_nor_ordered():
    assert fp.Bracket(0.0, 1.0) != "0 to 1"
    with pytest.raises(TypeError):
        assert fp.Bracket(0.0, 1.0) < "1"


def test_formats_one_number_or_both_ends():
    level = fp.Bracket(0.1234, 0.12341)
    assert (f"{level:.3f}", f"{level:i.3f}", round(level, 3)) == ("0.124", "[0.123, 0.124]", 0.124)
    assert (f"{level:.2e}", f"{level:8.2g}|", round(level)) == ("1.24e-01", "    0.13|", 1)
    assert f"{level}" == repr(level)
    safe = fp.Bracket(0.1239, 0.5, guaranteed="lower")
    assert (f"{safe:.3f}", round(safe, 3), round(safe)) == ("0.123", 0.123, 0)
    assert f"{fp.Bracket(0.25, 0.5):.3f}" == "0.500"
    assert f"{fp.Bracket(0.5, 0.5001):.3g}" == "0.501"
    assert f"{level:.2}|{level:*>7.3f}|{level:.1%}|{level:+.3f}" == "0.13|**0.124|12.4%|+0.124"
    assert f"{level:=07.3f}|{level:,.0f}|{level:.3n}|{level:<6.2f}|" == "000.124|1|0.124|0.13  |"
    assert f"{fp.Bracket(0.0, 2e-7):.1%}" == "0.1%"
    tenth = fp.Bracket(0.1, 0.1)  # one decimal: it stays
    assert (round(tenth, 1), f"{tenth:.1f}", f"{tenth:i.1f}") == (0.1, "0.1", "[0.1, 0.1]")
    with pytest.raises(ValueError, match="format specifier"):
        f"{level:xyz}"
    assert f"{fp.Bracket(1.0, math.inf):.3f}" == "inf"
    assert round(fp.Bracket(1.0, math.inf), 2) == math.inf
    assert json.dumps([level], default=fp.Bracket.json_default) == (
        '[{"lower": 0.1234, "upper": 0.12341}]'
    )
    far = json.dumps(fp.Bracket(1.0, math.inf), default=fp.Bracket.json_default, allow_nan=False)
    assert far == '{"lower": 1.0, "upper": "infinite"}'
    with pytest.raises(TypeError, match="to be written"):
        json.dumps([object()], default=fp.Bracket.json_default)


@given(st.floats(1e-12, 1e12), st.integers(0, 12), st.sampled_from(["e", "f", "g", "", "n"]))
def test_rounded_levels_are_never_too_small(value, digits, kind):
    for side, sign in (("upper", 1), ("lower", -1)):
        found = fp.Bracket(value, value, guaranteed=side)
        shown = Fraction(float(f"{found:.{digits}{kind}}"))
        assert (shown - Fraction(value)) * sign >= 0
        assert (round(found, digits) - value) * sign >= 0
        if kind == "f":
            assert abs(shown - Fraction(value)) <= Fraction(1, 10**digits) + Fraction(value) / 2**50


def test_every_error_has_one_base():
    errors = (
        fp.BudgetExceeded,
        fp.Infeasible,
        fp.InvalidInput,
        fp.LedgerError,
        fp.SolverFailure,
        fp.TooLarge,
    )
    assert all(issubclass(error, fp.FastprivError) for error in errors)
    with pytest.raises(fp.FastprivError, match="epsilon"):
        fp.HammingChannel(2, 2, -1.0)


def test_a_law_takes_a_space_like_a_channel_does():
    space = fp.Space([2, 2])
    prior = fp.Dense([0.4, 0.1, 0.2, 0.3], space)
    assert prior.space is space
    assert prior.epsilon_x() == fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2]).epsilon_x()
    with pytest.raises(fp.InvalidInput, match="databases"):
        fp.Dense([0.5, 0.5], space)


# JSON.

NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, NUMBERS, st.sampled_from(["lower", "upper"]))
def test_brackets_survive_json(a, b, guaranteed):
    bracket = fp.Bracket(min(a, b), max(a, b), guaranteed=guaranteed)
    again = fp.Bracket.from_json(bracket.to_json())
    assert (again.lower, again.upper) == (bracket.lower, bracket.upper)
    assert again.guaranteed == guaranteed
    head = json.loads(bracket.to_json())
    assert (head["fastpriv"], head["version"], head["kind"]) == ("result", 1, "Bracket")


@pytest.mark.parametrize(
    "prior",
    [
        fp.Uniform(3, 2),
        fp.Product([[0.6, 0.4], [0.2, 0.8]]),
        fp.Exchangeable.beta_binomial(3, 0.5, 0.8),
        fp.Dense([0.5, 0.3, 0.2]),
    ],
    ids=["closed form", "rows", "types", "dense"],
)
def test_solutions_survive_json(prior, tmp_path):
    solution = fp.solve_pd_dp(prior, 0.3)
    again = fp.Solution.from_json(solution.to_json())
    assert again == solution
    path = tmp_path / "solution.json"
    path.write_text(solution.to_json())
    assert fp.Solution.from_json(path) == solution


def test_profiles_survive_json():
    of = fp.accounting.PrivacyProfile
    for profile in (
        of.gaussian(2.0).self_compose(3),
        of.laplace(2.0, 0.1, relation="replace-one").compose(of.randomised_response(4, 0.1)),
        of.of([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]),  # infinite losses
    ):
        again = of.from_json(profile.to_json())
        assert again.to_dict() == profile.to_dict()
        assert again.delta(0.5).upper == profile.delta(0.5).upper


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "{",
        "nothing.json",
        '{"fastpriv": "result", "version": 2, "kind": "Bracket", "lower": 0, "upper": 1}',
        '{"fastpriv": "result", "version": 1, "kind": "Bracket", "lower": 0}',
        '{"fastpriv": "result", "version": 1, "kind": "Bracket", "lower": "x", "upper": 1}',
        '{"fastpriv": "result", "version": 1, "kind": "Bracket", "lower": 2, "upper": 1, '
        '"guaranteed": "upper"}',
        '{"fastpriv": "result", "version": 1, "kind": "Solution", "value": 1, "bound": 1, '
        '"level": 1}',
        '{"fastpriv": "profile", "version": 1, "kind": "PrivacyProfile", "releases": 3}',
    ],
)
def test_json_that_describes_nothing_is_refused(text):
    for kind in (fp.Bracket, fp.Solution, fp.accounting.PrivacyProfile):
        with pytest.raises(fp.InvalidInput):
            kind.from_json(text)


def test_a_solution_is_a_row_of_a_table():
    solution = fp.solve_pd_dp(fp.Uniform(3, 2), 1.0)
    head, row = solution.to_csv().splitlines()
    assert head == "value,bound,gap,level,method,solver,converged"
    assert row.split(",")[0] == repr(solution.value)
    frame = solution.to_frame()
    assert frame.loc[0, "level"] == solution.level
    assert frame.loc[0, "gap"] == solution.gap
    assert solution.to_latex().count(r"\\") == 2


@pytest.mark.parametrize(
    "ends", [(math.nan, 1.0), (0.0, math.nan), (2.0, 1.0), ("0", 1.0), (None, 1.0), (0.0, [1.0])]
)
@pytest.mark.parametrize("kind", ["Bracket", "IndividualCapacity", "SdpiConstant"])
def test_a_bracket_is_made_of_two_numbers_in_order(kind, ends):
    more = () if kind == "Bracket" else (None,)
    with pytest.raises(
        fp.errors.InvalidInput, match=r"lower and upper must be two numbers.*got .*\."
    ):
        getattr(results, kind)(*ends, *more)


def test_a_bracket_names_the_end_that_is_guaranteed():
    with pytest.raises(fp.errors.InvalidInput, match=r"guaranteed must be"):
        fp.Bracket(0.0, 1.0, guaranteed="both")
    assert fp.Bracket(np.float64(0.5), 1).upper == 1
