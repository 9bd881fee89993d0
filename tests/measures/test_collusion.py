"""Agents together: the exact information, and every bound above it."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import collusion as oc


def xor():
    joint = np.zeros((2, 2, 2))
    joint[0, 0, 0] = joint[0, 1, 1] = joint[1, 0, 1] = joint[1, 1, 0] = 0.25
    return joint


def flip(p):
    return np.array([[1 - p, p], [p, 1 - p]])


def test_exclusive_or():
    """Each output alone tells nothing, both tell all (M, after Lemma 2)."""
    found = fp.collusion(xor(), np.eye(2), np.eye(2))
    assert found.alone == (0.0, 0.0)
    assert found.exact == pytest.approx(math.log(2), rel=1e-14)
    assert found.markov == ()
    assert found.lemma_2 == math.inf
    assert found.condition is True  # X1, X2 are independent
    assert found.exact <= found.theorem_4 == pytest.approx(math.log(2), rel=1e-9)


def test_noisy_exclusive_or():
    found = fp.collusion(xor(), flip(0.1), flip(0.2))
    p = 0.1 * 0.8 + 0.9 * 0.2  # the two flips together
    truth = math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p)
    assert found.exact == pytest.approx(truth, rel=1e-13)
    assert found.coefficient.upper == pytest.approx(0.64, rel=1e-6)  # S* of a symmetric channel
    assert found.theorem_4 == pytest.approx(0.64 * math.log(2), rel=1e-6)


@pytest.mark.search(every=10)
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.3, 1.0, 5.0]))
def test_exact_and_bounds(seed, same, spread):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 5)
    S, a, b = int(sizes[0]) + 1, int(sizes[1]), int(sizes[2])
    b = a if same else b
    first = rng.dirichlet(np.full(int(sizes[3]), spread), a)
    second = rng.dirichlet(np.full(int(sizes[4]), spread), b)
    joint = rng.dirichlet(np.full(S * a * (1 if same else b), spread))
    joint = joint.reshape((S, a) if same else (S, a, b))
    cube = joint[:, :, None] * np.eye(a) if same else joint
    found = fp.collusion(joint, first, second)
    truth = float(oc.both(cube.tolist(), first.tolist(), second.tolist()))
    assert found.exact == pytest.approx(truth, rel=1e-10, abs=1e-14)
    for which in (1, 2):
        alone = float(oc.one(cube.tolist(), first.tolist(), second.tolist(), which))
        assert found.alone[which - 1] == pytest.approx(alone, rel=1e-10, abs=1e-14)
    assert found.exact >= max(found.alone) * (1 - 1e-10) - 1e-14
    slack = 1e-12
    assert found.exact <= found.theorem_4 + slack
    assert found.exact <= found.corollary_2 + slack
    assert found.theorem_4 <= found.corollary_2 * (1 + 1e-9)
    assert found.exact <= found.lemma_2 + slack
    assert found.bound <= found.lemma_2
    if found.condition:  # then X1 and X2 are independent, or lambda is 0 or 1
        pair = cube.sum(axis=0)[cube.sum(axis=(0, 2)) > 0.0]
        between = fp.mutual_information(pair / pair.sum(axis=1)[:, None], pair.sum(axis=1))
        most = found.coefficient.upper
        assert most * (1.0 - most) * between <= 2e-12


def test_markov_orders():
    rng = np.random.default_rng(1)
    # Given S the outputs are independent: Y1 - S - Y2.
    law, left, right = rng.dirichlet(np.ones(3)), *(rng.dirichlet(np.ones(2), 3) for _ in "ab")
    joint = np.einsum("s,sa,sb->sab", law, left, right)
    found = fp.collusion(joint, flip(0.2), flip(0.1))
    assert found.markov == ("S",)
    assert found.exact <= found.lemma_2 == pytest.approx(sum(found.alone), rel=1e-9)
    # X2 is a noisy copy of X1, which is shown as it is: S - Y1 - Y2.
    joint = np.einsum("s,sa,ab->sab", law, left, flip(0.3))
    found = fp.collusion(joint, np.eye(2), flip(0.1))
    assert found.markov == ("Y1",)
    assert found.exact == pytest.approx(found.alone[0], rel=1e-12)
    assert found.exact <= found.lemma_2 == pytest.approx(found.alone[0], rel=1e-9)
    back = fp.collusion(joint.transpose(0, 2, 1), flip(0.1), np.eye(2))
    assert back.markov == ("Y2",)


def test_condition_is_said_to_fail():
    """Both read the same X through noise: I(Y1; Y2) < lambda H(X)."""
    joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    found = fp.collusion(joint, flip(0.25), flip(0.25))
    assert found.condition is False
    printed = found.coefficient.upper * fp.mutual_information(joint / 0.5, [0.5, 0.5])
    assert found.exact > printed  # the theorem without its condition would be wrong here
    assert found.exact <= found.theorem_4


def test_channel_objects_and_words():
    channel = fp.HammingChannel(2, 2, 1.0)
    joint = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(3, 4)
    found = fp.collusion(joint, channel, channel.matrix())
    again = fp.collusion(joint, channel.matrix(), channel)
    assert found.exact == pytest.approx(again.exact, rel=1e-14)
    assert repr(found).startswith("Collusion(exact=")
    for wrong in (joint[:, :3], joint[None, None], np.ones((2, 2)), "joint", joint[:, :, None]):
        with pytest.raises(fp.InvalidInput):
            fp.collusion(wrong, channel, channel)
    with pytest.raises(fp.InvalidInput):
        fp.collusion(joint, channel, np.eye(2))


def test_too_large_is_refused_before_it_is_made():
    size = 50_000
    joint, channel = np.full((2, 2), 0.25), np.full((2, size), 1 / size)
    with pytest.raises(fp.TooLarge):
        fp.collusion(joint, channel, channel)
    # A shared input is not written out for every agent.
    joint, channel = np.full((2, size), 0.5 / size), np.full((size, 2), 0.5)
    assert fp.collusion(joint, channel, channel).exact == pytest.approx(0.0, abs=1e-15)


def several(joint, matrices, which):
    """Return I(S; Y_i, i in which) by a plain loop over all values, in many digits."""
    law = {}
    inputs = [range(len(matrix)) for matrix in matrices]
    outputs = [range(len(matrices[i][0])) for i in which]
    for s, x in product(range(len(joint)), product(*inputs)):
        for y in product(*outputs):
            weight = o.mpf(float(joint[(s, *x)]))
            for i, out in zip(which, y, strict=True):
                weight *= o.mpf(float(matrices[i][x[i]][out]))
            law[s, y] = law.get((s, y), 0) + weight
    return o.joint_information([[law[s, y] for y in product(*outputs)] for s in range(len(joint))])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_three_and_four_agents(seed, shared):
    rng = np.random.default_rng(seed)
    agents = 3 + seed % 2
    sizes = [2] * agents if shared else rng.integers(1, 4, agents).tolist()
    matrices = [rng.dirichlet(np.full(2 + i % 2, 0.6), m) for i, m in enumerate(sizes)]
    matrices[0][0] = np.eye(matrices[0].shape[1])[0]  # zeros
    joint = rng.dirichlet(np.full(2 * (2 if shared else math.prod(sizes)), 0.6))
    joint = joint.reshape(2, 2) if shared else joint.reshape(2, *sizes)
    cube = joint
    if shared:
        cube = np.zeros((2, *sizes))
        for x in range(2):
            cube[(slice(None), *[x] * agents)] = joint[:, x]
    found = fp.collusion(joint, *matrices)
    everyone = range(agents)
    assert found.exact == pytest.approx(float(several(cube, matrices, everyone)), rel=1e-10)
    assert len(found.alone) == agents
    for i in everyone:
        assert found.alone[i] == pytest.approx(float(several(cube, matrices, [i])), abs=1e-13)
    assert max(found.alone) <= found.exact + 1e-12
    assert found.exact <= min(found.theorem_4, found.corollary_2, found.lemma_2)
    assert found.coefficient.upper == pytest.approx(
        max(
            fp.sdpi_constant(W, cube.sum(axis=tuple(set(range(agents + 1)) - {i + 1}))).upper
            for i, W in enumerate(matrices)
        )
    )


def test_parity_of_three_bits_needs_all_three():
    joint = np.zeros((2, 2, 2, 2))
    for x in product(range(2), repeat=3):
        joint[(sum(x) % 2, *x)] = 1 / 8
    found = fp.collusion(joint, *[flip(0.1)] * 3)
    assert found.alone == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)
    p = (1 - 0.8**3) / 2  # an odd number of the three is flipped
    assert found.exact == pytest.approx(math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p))
    assert found.condition is True
    assert found.theorem_4 == pytest.approx(0.64 * math.log(2), rel=1e-6)
    with pytest.raises(fp.InvalidInput, match="at most 12"):
        fp.collusion(np.eye(2) / 2, *[flip(0.1)] * 13)
    with pytest.raises(fp.InvalidInput, match="2 and 2 and 2"):
        fp.collusion(joint, *[flip(0.1)] * 2, np.eye(3))
    with pytest.raises(fp.InvalidInput):
        fp.collusion(joint, *[flip(0.1)] * 2)


def test_markov_orders_of_three():
    rng = np.random.default_rng(2)
    law, parts = rng.dirichlet(np.ones(3)), [rng.dirichlet(np.ones(2), 3) for _ in range(3)]
    found = fp.collusion(np.einsum("s,sa,sb,sc->sabc", law, *parts), *[flip(0.2)] * 3)
    assert found.markov == ("S",)
    assert found.exact <= found.lemma_2 == pytest.approx(sum(found.alone), rel=1e-9)
    # The first agent shows its input; the others have noisy copies of it.
    copies = np.einsum("s,sa,ab,ac->sabc", law, parts[0], flip(0.3), flip(0.1))
    found = fp.collusion(copies, np.eye(2), flip(0.1), flip(0.4))
    assert found.markov == ("Y1",)
    assert found.exact <= found.lemma_2 == pytest.approx(found.alone[0], rel=1e-9)
