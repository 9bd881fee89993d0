"""Groups of rows of E_d: rows outside the group are check symbols of a code."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._core.clock import Clock
from fastpriv._structure.rows import Symmetric
from fastpriv.measures.individual import copies as codes
from fastpriv.measures.individual.adversary import searched
from fastpriv.measures.individual.copies import opposite_capacity

NOTHING = fp.IndividualCapacity(0.0, math.inf, None)


def information(law, W):
    """I of a law of the rows of W, term by term."""
    q = law @ W
    return sum(
        float(p * w * math.log(w / q[y]))
        for p, row in zip(law, W, strict=True)
        for y, w in enumerate(row)
        if p * w > 0.0
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0])
@pytest.mark.parametrize(("n", "m", "k"), [(4, 2, 2), (5, 2, 3), (3, 3, 2), (3, 4, 2), (2, 4, 2)])
def test_code_by_listing_all_outputs(n, m, k, epsilon):
    kernel = Symmetric(m, epsilon)
    bracket = codes.with_code(NOTHING, kernel, n, k, Clock(60.0))
    who = bracket.adversary
    assert sorted(map(tuple, who.databases[:, :k])) == list(itertools.product(range(m), repeat=k))
    channel = fp.HammingChannel(n, m, epsilon)
    W = channel.matrix()[channel.space.index(who.databases)]
    assert bracket.lower <= information(who.law, W) * (1.0 + 1e-9)
    assert bracket.lower == pytest.approx(information(who.law, W), rel=1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(3, 0.5), (4, 0.2), (4, 2.0), (5, 1.0)])
def test_no_adversary_tells_more_about_two_bits_than_a_code(n, epsilon):
    """The search goes through all adversaries; for other sizes this is a conjecture."""
    everything = searched(fp.HammingChannel(n, 2, epsilon), 2, 1e-9, 60.0)
    code = codes.with_code(NOTHING, Symmetric(2, epsilon), n, 2, Clock(60.0))
    assert code.lower == pytest.approx(everything.lower, rel=1e-8)
    assert everything.upper <= code.upper * (1.0 + 1e-9)


def test_pairs_bound_every_code_of_four_words():
    """All codes of four databases of five bits, which are more than those of a group."""
    rng = np.random.default_rng(0)
    for epsilon in (0.3, 1.0, 4.0):
        kernel, channel = Symmetric(2, epsilon), fp.HammingChannel(5, 2, epsilon)
        most = codes.pairs_bound(kernel, 5, 2)
        for _ in range(20):
            rows = channel.matrix()[rng.choice(32, 4, replace=False)]
            assert fp.channel_capacity(rows).lower <= most


def test_weights_of_pairs():
    """The step of the proof: what a column of bits adds to the weights of pairs is at most 4/3."""
    rng = np.random.default_rng(1)

    def entropy(*p):
        return -sum(x * math.log2(x) for x in p if x > 0.0)

    for weight in (0.05, 0.3, 1.0, 10.0, 1e4):
        for P in rng.dirichlet(np.full(4, weight), 40):
            pairs = dict.fromkeys(itertools.combinations(range(4), 2), 0.0)
            for left in ((0, 1), (0, 2), (0, 3)):
                right = tuple(v for v in range(4) if v not in left)
                t = P[list(left)].sum()
                for side, mass in ((left, t), (right, 1.0 - t)):
                    if mass > 0.0:
                        pairs[side] += mass * entropy(*P[list(side)] / mass) / 3.0
                for a in left if 0.0 < t < 1.0 else ():
                    for c in right:
                        pairs[min(a, c), max(a, c)] += (
                            entropy(t, 1.0 - t) * P[a] * P[c] / (t * (1.0 - t)) / 3.0
                        )
            assert math.fsum(pairs.values()) == pytest.approx(entropy(*P))
            for column in itertools.product(range(2), repeat=4):
                cut = sum(w for (a, c), w in pairs.items() if column[a] != column[c])
                assert cut <= 4.0 / 3.0 + 1e-12


@pytest.mark.parametrize(("d", "t"), [(1, 0.1), (3, 0.3), (4, 0.01)])
def test_uneven_weights_of_two_databases(d, t):
    """The step of the proof: I at weights t, 1 - t is at most h(t)/ln 2 times the capacity."""
    channel = fp.HammingChannel(d, 2, 1.0)
    W = channel.matrix()[[0, -1]]
    share = -(t * math.log2(t) + (1.0 - t) * math.log2(1.0 - t))
    assert (
        information(np.array([t, 1.0 - t]), W)
        <= share * opposite_capacity([Symmetric(2, 1.0)] * d).upper
    )


def test_a_code_without_time_tells_less():
    symbols = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
    kernel = Symmetric(2, 1.0)
    assert codes.code_information(kernel, symbols, Clock(0.0))[0] == 0.0
    assert codes.code_information(kernel, symbols, Clock(9.0))[0] > 0.3


def test_groups_that_were_wide():
    two = fp.group_capacity(fp.HammingChannel(30, 2, 0.5), 2)
    assert two.lower == pytest.approx(0.68135299, abs=1e-8)
    assert two.upper <= 0.7738
    three = fp.group_capacity(fp.HammingChannel(30, 2, 0.5), 3)
    assert three.lower >= 0.7885
    assert fp.group_capacity(fp.HammingChannel(20, 3, 0.3), 2).lower >= 0.2063
