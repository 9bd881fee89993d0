"""Ledgers: composition laws, priors, and the levels of what is drawn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import LAWS, Ledger
from fastpriv.errors import InvalidInput
from fastpriv.measures.levels import LEVELS
from fastpriv.measures.realised import drawn_level
from oracles.channels import both
from oracles.ledger import truth

NOTIONS = [
    "strong-dp",
    "dp",
    "product-row-pml",
    "product-row-max-information",
    "identifiability",
    "pml-all-priors",
    "information-privacy",
    "pml",
    "divergence",
    "maximal-leakage",
    "mutual-information",
    "leakage-factor",
]


GENEROUS = dict.fromkeys(NOTIONS, 1000.0)


@st.composite
def releases(draw):
    """Two channels on one space and a prior, all entries positive."""
    sizes = draw(st.sampled_from([(2,), (3,), (2, 2), (2, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    N = math.prod(sizes)
    sharpness = draw(st.sampled_from([0.3, 1.0, 5.0]))
    first, second = (
        rng.dirichlet(np.full(draw(st.integers(2, 4)), sharpness), N) + 1e-6 for _ in range(2)
    )
    first, second = (W / W.sum(axis=1, keepdims=True) for W in (first, second))
    prior = rng.dirichlet(np.ones(N)) + 1e-6
    return sizes, first, second, prior / prior.sum()


@settings(deadline=None, max_examples=60)
@given(releases())
def test_spent_covers_what_is_composed(case):
    sizes, first, second, p = case
    ledger, prior = Ledger(GENEROUS), fp.Dense(p, sizes)
    ledger.spend(fp.Channel(first, sizes), prior)
    one = truth(first, p, sizes)
    for notion, level in ledger.spent.items():
        slack = 1e-9 if notion != "divergence" else math.inf  # charged its pml level
        assert one[notion] * (1 - 1e-12) - 1e-14 <= level <= one[notion] * (1 + 1e-9) + slack
    ledger.spend(fp.Channel(second, sizes), prior)
    two = truth(both(first, second), p, sizes)
    for notion, level in ledger.spent.items():
        assert level >= two[notion] * (1 - 1e-12) - 1e-14, notion


def test_count_follows_the_law_too():
    W, p = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.1, 0.9])
    ledger, triple = Ledger(GENEROUS), both(W, both(W, W))
    receipt = ledger.spend(W, p, count=3)
    for notion, level in truth(triple, p, (2,)).items():
        assert receipt.charged[notion] >= level * (1 - 1e-12)
    assert math.isclose(
        receipt.charged["identifiability"],
        fp.identifiability_level(W, p) + 2 * fp.dp_level(W),
    )


def test_pointwise_levels_under_the_prior_do_not_add():
    """Why later releases are charged their leakage capacity: the sum of levels is too little."""
    W, p = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.9, 0.1])
    assert truth(both(W, W), p, (2,))["pml"] < 2 * truth(W, p, (2,))["pml"]
    V = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.001, 0.4995, 0.4995]]) + 1e-9
    V, q = V / V.sum(axis=1, keepdims=True), np.array([0.005, 0.005, 0.99])
    one, two = truth(V, q, (3,)), truth(both(V, V), q, (3,))
    ledger = Ledger({"pml": 100.0})
    ledger.spend(V, q, count=2)
    assert ledger.spent["pml"] >= two["pml"]
    assert one["pml"] > 0


def test_information_on_rows_is_at_most_the_dp_level():
    ledger, W = Ledger({"product-row-information": 10.0}), [[0.7, 0.3], [0.2, 0.8]]
    ledger.spend(W, count=2)
    assert ledger.spent["product-row-information"] >= 2 * fp.channel_capacity(W).upper
    ledger.spend({"product-row-information": 0.5})
    assert len(ledger) == 2


def test_individual_capacity_adds_where_it_is_declared():
    ledger = Ledger({"individual-capacity": 1.0})
    ledger.spend({"individual-capacity": 0.25}, count=2)
    assert ledger.spent == {"individual-capacity": 0.5}


def test_identifiability_is_charged_once():
    ledger = Ledger({"identifiability": 10.0})
    prior = fp.Product.iid([0.8, 0.2], 3)
    ledger.spend(fp.HammingChannel(3, 2, 0.5), prior)
    ledger.spend(fp.HammingChannel(3, 2, 0.25))  # a later release needs no prior
    ledger.spend({"dp": 0.125})
    assert math.isclose(ledger.spent["identifiability"], math.log(4) + 0.875, rel_tol=1e-14)
    with pytest.raises(InvalidInput, match="charged the dp level"):
        ledger.spend({"identifiability": 0.1})


def test_the_first_release_of_a_prior_notion_needs_the_prior(make):
    ledger = make({"identifiability": 10.0})
    with pytest.raises(InvalidInput, match="give a prior"):
        ledger.spend(fp.HammingChannel(3, 2, 0.5))
    with pytest.raises(InvalidInput, match="charged the identifiability level"):
        ledger.spend({"dp": 0.5})
    assert ledger.spent == {"identifiability": 0.0}


def test_information_is_kept_under_one_prior(make):
    ledger, W = make({"mutual-information": 1.0}), [[0.6, 0.4], [0.4, 0.6]]
    ledger.spend(W, [0.5, 0.5])
    ledger.spend(W, fp.Product([[0.5, 0.5]]))  # the same law, said in another way
    with pytest.raises(InvalidInput, match="under one prior"):
        ledger.spend(W, [0.25, 0.75])
    ledger.spend({"mutual-information": 0.1})
    assert len(ledger) == 3


@pytest.mark.slow
def test_million_rows_on_a_markov_prior():
    n = 100_000
    prior = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], n)
    ledger = Ledger({"dp": 1.0, "mutual-information": 1e5})
    ledger.spend(fp.HammingChannel(n, 2, 0.5), prior)
    bracket = fp.mutual_information(fp.HammingChannel(n, 2, 0.5), prior)
    assert ledger.spent["mutual-information"] >= bracket.upper


def test_what_is_drawn_counts_and_is_computed_once():
    calls = []

    class Drawn(fp.HammingChannel):
        pass

    @drawn_level.register
    def _(channel: Drawn) -> float:
        calls.append(channel)
        return 0.75

    ledger, channel = Ledger({"dp": 10.0}), Drawn(3, 2, 0.5)
    for _ in range(5):
        ledger.spend(channel)
    assert ledger.spent["dp"] == 3.75
    assert calls == [channel]
    ledger.spend(Drawn(3, 2, 0.5))  # a class that does not say what defines it: another one
    assert len(calls) == 2
    plain = Ledger({"dp": 10.0})
    plain.spend(fp.HammingChannel(3, 2, 0.5))  # and not what its parent draws
    assert plain.spent["dp"] <= 0.5


def test_every_level_is_that_of_what_is_drawn():
    """A chance of 1e-30 is drawn as 2^-64: ratios and leakages are those of the draws."""
    channel = fp.QueryChannel([0, 1], [[1.0, 1e-30], [0.5, 0.5]], [2])
    prior = fp.Dense([0.5, 0.5])
    budget = {"strong-dp": 100.0, "pml": 100.0, "identifiability": 100.0, "maximal-leakage": 9.0}
    ledger = Ledger(budget | {"approximate-dp": (100.0, 1e-25)})
    ledger.spend(channel, prior)
    level = 63 * math.log(2)  # ln of 0.5 over 2^-64, not of 0.5 over 1e-30
    for notion in ("strong-dp", "identifiability", "approximate-dp"):
        assert ledger.spent[notion] == pytest.approx(level, rel=1e-9)
    assert ledger.spent["pml"] >= math.log(2 / (1 + 2**-63))


def test_every_law_has_a_measure():
    for law in LAWS.values():
        if law.first in ("zcdp", "delta"):  # of profiles, or declared
            continue
        if law.first != "constrained-capacity":  # depends on an entropy too, so it is declared
            assert law.first in LEVELS
        assert law.later in LEVELS


def test_levels_at_an_entropy_are_declared():
    ledger = Ledger({"constrained-capacity": 0.4})
    ledger.spend({"constrained-capacity": 0.1, "individual-capacity": 0.2})
    ledger.spend({"constrained-capacity": 0.1, "individual-capacity": 0.2})
    assert ledger.spent["constrained-capacity"] == pytest.approx(0.3)
    with pytest.raises(InvalidInput, match="constrained-capacity"):
        Ledger({"constrained-capacity": 0.4}).spend(fp.HammingChannel(2, 2, 1.0))


@pytest.mark.parametrize("epsilon", [1e-8, 0.0, 700.0])
def test_extreme_levels(epsilon):
    ledger = Ledger({"dp": 1400.0, "strong-dp": 1400.0})
    ledger.spend(fp.HammingChannel(1, 2, epsilon), count=2)
    assert ledger.spent["dp"] >= 0.0
    assert ledger.remaining["dp"] <= 1400.0


def test_priors_that_differ_in_one_float_are_different():
    pmf = np.full(1024, 1.0 / 1024)
    other = pmf.copy()
    other[[700, 701]] += [1e-6, -1e-6]  # far from any probe, in the seventh digit
    ledger = Ledger({"mutual-information": 5.0})
    channel = fp.HammingChannel(10, 2, 0.5)
    ledger.spend(channel, fp.Dense(pmf, [2] * 10))
    ledger.spend(channel, fp.Dense(pmf.copy(), [2] * 10))
    with pytest.raises(InvalidInput, match="prior"):
        ledger.spend(channel, fp.Dense(other, [2] * 10))
