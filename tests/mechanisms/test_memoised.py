"""Answers that are drawn once and repeated, against all transcripts in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.mechanisms import Memoised

A, B = Fraction(3, 5), Fraction(1, 5)  # three values: keep with 3/5
P = [[A if x == z else B for z in range(3)] for x in range(3)]
V = [[Fraction(1, 2) if z == y else Fraction(1, 4) for y in range(3)] for z in range(3)]
PERMANENT = fp.Channel([[float(e) for e in row] for row in P])
FRESH = fp.Channel([[float(e) for e in row] for row in V])


def transcript(history, reports):
    """Chance of all reports, given the value in every round: one answer for each value."""
    chance = Fraction(1)
    for value in set(history):
        rounds = [i for i, held in enumerate(history) if held == value]
        chance *= sum(
            P[value][z] * math.prod((V[z][reports[i]] for i in rounds), start=Fraction(1))
            for z in range(3)
        )
    return chance


def worst(first, second):
    """Largest ratio of the chances of a transcript under two histories."""
    return max(
        transcript(first, reports) / transcript(second, reports)
        for reports in itertools.product(range(3), repeat=len(first))
    )


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_a_constant_value_is_a_chain_of_post_processing(rounds):
    memoised = Memoised(PERMANENT, FRESH)
    matrix = memoised.channel(rounds).matrix()
    for x in range(3):
        exact = [
            float(transcript([x] * rounds, reports))
            for reports in itertools.product(range(3), repeat=rounds)
        ]
        np.testing.assert_allclose(matrix[x], exact, rtol=1e-12)
    ratio = max(worst([x] * rounds, [w] * rounds) for x in range(3) for w in range(3))
    level = memoised.level(rounds)
    assert math.log(ratio) <= level <= math.log(ratio) + 1e-12
    assert level < memoised.level() == fp.realised_level(PERMANENT)


def test_more_rounds_tell_more_and_never_more_than_the_answer():
    memoised = Memoised(PERMANENT, FRESH)
    levels = [memoised.level(rounds) for rounds in range(1, 8)]
    assert levels == sorted(levels)
    assert levels[-1] < math.log(3.0) + 1e-9
    prior = [0.2, 0.3, 0.5]
    gains = [fp.mutual_information(memoised.channel(t), prior) for t in range(1, 8)]
    assert gains == sorted(gains)
    assert gains[-1] < fp.mutual_information(PERMANENT, prior)


def test_levels_of_several_values_add_up_for_one_pattern_of_changes():
    """All pairs of histories with the same pattern: values equal in the same rounds."""
    memoised = Memoised(PERMANENT, FRESH)
    most = max(
        worst((a, a, b), (c, c, d))
        for a, b in itertools.permutations(range(3), 2)
        for c, d in itertools.permutations(range(3), 2)
    )
    both = memoised.level(2) + memoised.level(1)
    assert math.log(most) <= both + 1e-12 <= memoised.level(values=2)


def test_changes_themselves_are_not_covered():
    """Without fresh noise an answer that differs tells of a change: more than two values cost."""
    permanent = fp.HammingChannel(1, 50, 1.0)
    matrix = permanent.matrix()
    constant = matrix[0, 0]  # the answer z = 0 twice, from one draw
    changing = matrix[1, 0] * matrix[2, 0]  # the same transcript from two draws
    assert math.log(constant / changing) > 2 * Memoised(permanent).level() + 1.0


def test_answers_are_kept():
    memoised = Memoised(fp.HammingChannel(1, 5, 1.0))
    kept = {}
    users = [f"u{i}" for i in range(200)]
    values = np.arange(200) % 5
    first = memoised.report(users, values, kept)
    np.testing.assert_array_equal(memoised.report(users, values, kept), first)
    other = memoised.report(users, (values + 1) % 5, kept)
    assert (other != first).any()
    np.testing.assert_array_equal(memoised.report(users, values, kept), first)
    assert len(kept) == 400
    assert memoised.channel(9) == memoised.permanent
    assert memoised.level(9) == memoised.level()


def test_every_mechanism_can_be_permanent():
    for permanent, fresh in (
        (fp.UnaryChannel(4, 2.0, "symmetric"), fp.HammingChannel(4, 2, 1.0)),  # RAPPOR
        (fp.SubsetChannel(6, 1.0), None),
        (fp.HashingChannel(9, 1.0), None),
        (fp.HadamardChannel(6, 1.0), fp.HammingChannel(1, 8, 1.0)),
    ):
        memoised, kept = Memoised(permanent, fresh), {}
        users, values = ["a", "b", "a"], [1, 1, 1]
        reports = memoised.report(users, values, kept, rng=1)
        assert len(reports) == 3
        assert len(kept) == 2
        if fresh is None:
            np.testing.assert_array_equal(reports[0], reports[2])
        else:
            assert memoised.level(1) < memoised.level()


@pytest.mark.slow(only=["<lambda>-outputs together"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Memoised(fp.HammingChannel(2, 2, 1.0)), "one record"),
        (lambda: Memoised(PERMANENT, fp.HammingChannel(1, 4, 1.0)), "on the outputs of"),
        (lambda: Memoised(PERMANENT).level(values=0), "values must be"),
        (lambda: Memoised(PERMANENT, FRESH).channel(0), "rounds must be"),
        (lambda: Memoised(PERMANENT, FRESH).channel(40), "outputs together"),
        (lambda: Memoised(PERMANENT).report(["a"], [0, 1], {}), "1 users; got 2"),
        (lambda: Memoised(PERMANENT).report(["a"], [3], {}), "0 .. 2"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(fp.FastprivError, match=words):
        make()
