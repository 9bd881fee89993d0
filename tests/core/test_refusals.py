"""Arguments that are refused in one short sentence, and numbers of every kind that are taken."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.priors.markov import HiddenMarkov

W = [[0.9, 0.1], [0.2, 0.8]]
HUGE = 10**400
CHAIN = fp.Markov([0.5, 0.5], W, 3)
STEP = fp.accounting.PrivacyProfile.gaussian(1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fp.two_dataset_bound(W, W, gap="x"),
        lambda: fp.implications(0.1, "dp", n=HUGE),
        lambda: fp.implications(0.1, "dp", prior=[0.5, 0.5], n=HUGE),
        lambda: fp.implications(0.1, "leakage-fact"),
        lambda: fp.implications(0.1, HUGE),
        lambda: STEP.sampled_with_replacement(5, HUGE),
        lambda: STEP.sampled_with_replacement(HUGE, HUGE),
        lambda: HiddenMarkov(CHAIN, None),
        lambda: HiddenMarkov(CHAIN, [W] * 3),
        lambda: HiddenMarkov(None, None),
        lambda: fp.group_capacity(W, HUGE),
        lambda: fp.group_bound(W, HUGE),
        lambda: fp.constrained_capacity(W, 0.1, k=HUGE),
        lambda: fp.row_pml(W, [0.5, 0.5], HUGE),
        lambda: fp.HadamardChannel(3, 1.0, blocks=HUGE),
        lambda: fp.HashingChannel(3, 1.0, g=HUGE),
        lambda: fp.SubsetChannel(3, 1.0, size=HUGE),
        lambda: fp.threshold_query_bound(5, HUGE, 0.5),
        lambda: fp.audit(W, notions=[HUGE]),
        lambda: fp.constrained_composition_bound(W, W, b=0.1, points=HUGE),
        lambda: fp.plot.balance(W, points=HUGE),
        lambda: fp.Bracket(1, HUGE),
        lambda: fp.Bracket(Fraction(-HUGE), 1.0),
        lambda: fp.accounting.PrivacyProfile.randomised_response(HUGE, 1.0),
    ],
)
def test_refused_in_a_short_sentence(call):
    with pytest.raises(fp.InvalidInput) as caught:
        call()
    assert len(str(caught.value)) <= 250


def test_the_nearest_name_is_given():
    with pytest.raises(fp.InvalidInput, match="did you mean leakage-factor"):
        fp.implications(0.1, "leakage-fact")


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers_of_every_kind(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = fp.mechanisms.laplace_count_leakage(kind(4), 0.5, 0.3, [0.2])
        assert told == fp.mechanisms.laplace_count_leakage(4, 0.5, 0.3, [0.2])
        assert fp.two_dataset_bound(W, W, gap=kind(1)) == fp.two_dataset_bound(W, W, gap=1.0)


def test_no_warning_where_rows_are_nearly_equal():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            near = rng.dirichlet(np.ones(3)) + 10.0 ** -rng.uniform(7, 9) * rng.random((3, 3))
            prior = fp.capacity_prior(near / near.sum(axis=1, keepdims=True))
            assert math.isclose(math.fsum(prior.pmf()), 1.0, rel_tol=1e-12)
