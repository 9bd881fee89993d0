"""Composition laws of every notion, checked on composed channels."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import LAWS, compose_levels, pml_chain
from fastpriv.notions.registry import RELATED


def composed(*channels):
    """Matrix of all outputs together, one column for each tuple."""
    total = np.ones((len(channels[0]), 1))
    for matrix in channels:
        total = np.einsum("xy,xz->xyz", total, matrix).reshape(len(total), -1)
    return total


LEVELS = {
    "strong-dp": lambda W, p: fp.strong_dp_level(W),
    "dp": lambda W, p: fp.dp_level(W),
    "approximate-dp": lambda W, p: fp.dp_level(W),
    "identifiability": fp.identifiability_level,
    "pml-all-priors": lambda W, p: fp.leakage_capacity(W),
    "information-privacy": fp.information_privacy_level,
    "pml": fp.pml_level,
    "maximal-leakage": lambda W, p: fp.maximal_leakage(W),
    "mutual-information": fp.mutual_information,
    "leakage-factor": fp.leakage_factor,
    "product-row-pml": lambda W, p: fp.pml_level(W, fp.PriorSet.product(W.space), row="worst"),
    "individual-capacity": lambda W, p: fp.individual_capacity(W).upper,
}


def divergence(channel, prior):
    """Largest KL divergence of a posterior from the prior."""
    joint = channel.matrix() * prior.pmf()[:, None]
    posterior = joint / joint.sum(axis=0)
    return float((posterior * np.log(posterior / prior.pmf()[:, None])).sum(axis=0).max())


LEVELS["divergence"] = divergence


@pytest.mark.grid
@pytest.mark.parametrize("notion", LEVELS)
@pytest.mark.parametrize("seed", range(8))
def test_laws_bound_composed_channels(notion, seed):
    rng = np.random.default_rng([seed, 3])
    sizes = [2, 2]
    matrices = [rng.dirichlet(np.full(3, 2.0), 4) for _ in range(3)]
    prior = fp.Dense(rng.dirichlet(np.full(4, 5.0)), sizes)
    law = LAWS[notion]

    def level(name, matrix):
        return LEVELS[name](fp.Channel(matrix, sizes), prior)

    parts = [level(law.first, matrices[0]), *(level(law.later, W) for W in matrices[1:])]
    total = level(notion, composed(*matrices))
    assert total <= compose_levels(notion, parts) * (1 + 1e-12)


def test_every_notion_has_a_law():
    assert set(LAWS) >= {"dp", "approximate-dp", "individual-capacity", "constrained-capacity"}
    # Premises of audits without a rule of composition; no ledger keeps them.
    premises = {
        "channel-capacity", "contraction", "group-capacity", "max-individual-capacity",
        "max-information", "maximal-correlation", "row-pml", "sdpi",
    }  # fmt: skip
    assert set(RELATED) - set(LAWS) == premises
    assert set(LAWS) - set(RELATED) == {"constrained-capacity", "delta", "zcdp"}
    for notion, law in LAWS.items():
        assert law.notion == notion
        assert {law.first, law.later} <= set(LAWS)
        assert law.needs
        assert law.source
        assert law.adds == (law.name == "levels add")


def chosen_after(first, seconds):
    """Matrix of both outputs, where the second mechanism depends on the first output."""
    parts = [first[:, y : y + 1] * second for y, second in enumerate(seconds)]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("priors", ["all", "independent"])
@pytest.mark.parametrize("seed", range(6))
def test_capacities_add_for_adaptive_releases(seed, priors):
    rng = np.random.default_rng([seed, 9])
    first, *seconds = (rng.dirichlet(np.full(3, 0.5), 6) for _ in range(4))
    sizes = [2, 3]
    total, one, *others = (
        fp.individual_capacity(fp.Channel(W, sizes), priors)
        for W in (chosen_after(first, seconds), first, *seconds)
    )
    notion = "individual-capacity" if priors == "all" else "product-row-information"
    assert "later mechanisms may depend" in LAWS[notion].needs
    assert total.lower <= compose_levels(notion, [one.upper, max(c.upper for c in others)])


def test_information_under_one_prior_does_not_add_for_adaptive_releases():
    """A useless first bit chooses which of two rare values the second release looks at."""
    prior = np.array([0.98, 0.01, 0.01])
    first = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    looks = [np.eye(2)[[0, 1, 0]], np.eye(2)[[0, 0, 1]]]
    total = fp.mutual_information(chosen_after(first, looks), prior)
    parts = fp.mutual_information(first, prior), max(fp.mutual_information(W, prior) for W in looks)
    assert total > sum(parts) * 1.2


def test_fixed_prior_levels_do_not_add():
    """Why leakage under one prior needs the capacity of later releases."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        W = rng.dirichlet(np.full(3, 0.5), 3)
        prior = rng.dirichlet(np.ones(3))
        worst = max(worst, fp.pml_level(composed(W, W), prior) - 2 * fp.pml_level(W, prior))
    assert worst > 1e-3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 50), max_size=8))
def test_sums_are_rounded_up_and_tight(levels):
    found = compose_levels("dp", levels)
    exact = sum(map(Fraction, levels), Fraction(0))
    assert Fraction(found) >= exact
    assert found == 0.0 or Fraction(math.nextafter(found, 0.0)) < exact


def test_words_and_edges():
    assert compose_levels("dp", []) == 0.0
    assert compose_levels("dp", [1.0, math.inf]) == math.inf
    assert compose_levels("leakage-factor", [0.7, 0.8]) == 1.0
    for notion, levels in (("privacy", [1.0]), ("dp", [-1.0]), ("dp", ["1"]), ("dp", [math.nan])):
        with pytest.raises(fp.InvalidInput):
            compose_levels(notion, levels)


# Leakage of outputs that were seen.


@pytest.mark.parametrize("seed", range(5))
def test_chain_is_the_leakage_of_all_outputs(seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(4))
    matrices = [rng.dirichlet(np.ones(3), 4) for _ in range(3)]
    outputs = rng.integers(0, 3, 3).tolist()
    found = pml_chain(prior, zip(matrices, outputs, strict=True))
    for i in range(1, 4):
        flat = np.ravel_multi_index(outputs[:i], [3] * i)
        truth = fp.pml(composed(*matrices[:i]), prior)[flat]
        assert found[i - 1] == pytest.approx(truth, rel=1e-12, abs=1e-14)
    # The posterior chain: each output under what the ones before it leave.
    steps, law = [], prior
    for W, y in zip(matrices, outputs, strict=True):
        steps.append(fp.pml(W, law)[y])
        law = law * W[:, y]
        law /= law.sum()
    assert found[-1] <= sum(steps) * (1 + 1e-12)


def priors(n):
    yield fp.Product.iid([0.7, 0.3], n)
    yield fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n)
    yield fp.Exchangeable.beta_binomial(n, 0.7, 1.2)
    yield fp.Dense(np.random.default_rng(1).dirichlet(np.ones(2**n)), [2] * n)


@pytest.mark.parametrize("prior", [*priors(4)], ids=repr)
@pytest.mark.parametrize("epsilon", [1e-8, 0.8, 12.0])
def test_chain_in_the_structure_of_the_prior(prior, epsilon):
    rng = np.random.default_rng(2)
    asymmetric = fp.ProductChannel([rng.dirichlet(np.ones(3), 2) for _ in range(4)])
    channels = [
        fp.HammingChannel(4, 2, epsilon),
        fp.HammingChannel(4, 2, 0.5 * epsilon),
        asymmetric,
    ]
    outputs = [[0, 1, 1, 0], [0, 0, 1, 0], [2, 0, 1, 1]]
    found = pml_chain(prior, zip(channels, outputs, strict=True))
    plain = [fp.Channel(c.matrix(), prior.space) for c in channels]
    flat = [c.output_space.index(y) for c, y in zip(channels, outputs, strict=True)]
    truth = pml_chain(prior, zip(plain, flat, strict=True))
    assert found == pytest.approx(truth, rel=1e-6 if epsilon < 1e-6 else 1e-11)
    assert found[0] == pytest.approx(fp.pml(channels[0], prior, y=outputs[0]), rel=1e-12)
    mixed = pml_chain(prior, [(channels[0], outputs[0]), (plain[1], flat[1])])
    assert mixed == pytest.approx(truth[:2], rel=1e-6 if epsilon < 1e-6 else 1e-11)


@pytest.mark.slow
def test_chain_over_many_rows_and_releases():
    n = 10**5
    prior, channel = fp.Product.iid([0.5, 0.5], n), fp.HammingChannel(n, 2, 1.0)
    row = fp.HammingChannel(1, 2, 1.0)
    found = pml_chain(prior, [(channel, [0] * n)] * 4)
    one = pml_chain([0.5, 0.5], [(row, [0])] * 4)
    assert found == pytest.approx(n * one, rel=1e-11)
    swinging = pml_chain([0.5, 0.5], [(row, [i % 2]) for i in range(200)])
    assert swinging[1::2].max() < 1e-11


def test_chain_edges():
    assert len(pml_chain([0.5, 0.5], [])) == 0
    shown = np.eye(2)
    assert pml_chain([0.25, 0.75], [(shown, 0)])[0] == pytest.approx(math.log(4))
    assert pml_chain([0.25, 0.75], [(shown, 0), (shown, 1)])[1] == 0.0  # cannot occur
    assert pml_chain([0.0, 1.0], [(shown, 1)])[0] == pytest.approx(0.0, abs=1e-15)
    for wrong in ([(shown, 2)], [(shown, [0.5])], [shown], [(np.eye(3), 0)], [("x", 0)]):
        with pytest.raises(fp.InvalidInput):
            pml_chain([0.25, 0.75], wrong)
