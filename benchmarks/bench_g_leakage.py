"""g-leakage, refinement and hyper-distributions against qif; mutual information against dit.

Values of both sides are recorded, so that the tables show that they agree.
"""

import math
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes, yardstick


def value(answer):
    """The answer."""
    return {"value": float(answer)}


def gain(actions, size):
    """A gain function with entries in [0, 1)."""
    return instances.uniform([3, actions, size], actions * size).reshape(actions, size)


def qif_measure(name, *arguments):
    """A function of qif's measures."""
    import qif

    group, _, measure = name.partition(".")
    return getattr(getattr(qif.measure, group), measure)(*arguments)


@pytest.mark.parametrize("size", sizes(8, 48, large=[512]))
def test_vulnerabilities(versus, size):
    """One matrix under one prior: a right guess, and any gain."""
    W, p, g = instances.channel(size), instances.prior(size), gain(size, size)
    channel, prior = fp.Channel(W), fp.Dense(p)
    instance = f"random {size} x {size}"
    versus(
        "posterior Bayes vulnerability",
        instance,
        ours(partial(fp.posterior_vulnerability, channel, prior), value),
        peer("qif", partial(qif_measure, "bayes_vuln.posterior", p, W), value, needs="qif"),
        yardstick("np.sum", partial(np.sum, W)),
        seed=0,
    )
    versus(
        "posterior g-vulnerability",
        instance,
        ours(partial(fp.posterior_vulnerability, channel, prior, g), value),
        peer("qif", partial(qif_measure, "g_vuln.posterior", g, p, W), value, needs="qif"),
        yardstick("gain @ joint", lambda: g @ (p[:, None] * W)),
        seed=0,
    )
    for kind, spanning in (("bounded", False), ("spanning", True)):
        call = partial(qif_measure, "g_vuln.add_capacity", p, W, spanning)
        versus(
            f"additive capacity over {kind} gains",
            instance,
            ours(partial(fp.additive_gain_capacity, channel, prior, kind), value),
            peer("qif", call, value, needs="qif"),
            seed=0,
        )


def qif_hyper(W, p):
    """Number of posteriors by qif."""
    import qif

    return len(qif.channel.hyper(W, p)[0])


@pytest.mark.parametrize("size", sizes(8, 48, large=[200]))
def test_hyper(versus, size):
    """A channel each of whose columns occurs twice, in two sizes."""
    base, p = instances.channel(size), instances.prior(size)
    W = np.hstack([0.25 * base, 0.75 * base])
    channel, prior = fp.Channel(W), fp.Dense(p)
    versus(
        "hyper-distribution",
        f"random {size} x {2 * size}, columns twice",
        ours(lambda: len(fp.hyper(channel, prior)), value),
        peer("qif", partial(qif_hyper, W, p), value, needs="qif"),
        seed=0,
    )


def qif_refinement(name, *arguments):
    """Its additive metric, or whether one refines the other."""
    import qif

    result = getattr(qif.refinement, name)(*arguments)
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("size", sizes(4, 8, large=[12, 16]))
def test_refinement(versus, size):
    """The distance of a channel from every processing of another one, and a processing."""
    A, B, p = instances.channel(size), instances.channel(size, seed=1), instances.prior(size)
    first, second, prior = fp.Channel(A), fp.Channel(B), fp.Dense(p)
    versus(
        "additive refinement metric",
        f"random {size} x {size}",
        ours(
            lambda: fp.refines(first, second, prior, gains="bounded").deficiency,
            lambda bracket: {"value": bracket.upper, "error": bracket.width},
        ),
        peer("qif", partial(qif_refinement, "add_metric", p, A, B), value, needs="qif"),
        seed=0,
        error_of="width",
        target=1e-8,
    )
    C = A @ B
    third = fp.Channel(C)
    versus(
        "a processing is recognised",
        f"random {size} x {size}",
        ours(lambda: bool(fp.refines(first, third)), value),
        peer("qif", partial(qif_refinement, "refined_by", A, C), value, needs="qif"),
        seed=0,
    )


@pytest.mark.parametrize("size", sizes(4, 8, large=[12, 16]))
def test_capacity_over_priors(versus, size):
    """The largest additive Bayes leakage over priors, against all sets of databases."""
    W = instances.channel(size)
    versus(
        "additive Bayes capacity",
        f"random {size} x {size}",
        ours(
            partial(fp.additive_g_capacity, fp.Channel(W)),
            lambda bracket: {"value": bracket.upper, "error": bracket.width},
        ),
        peer("numpy, all sets", partial(over_sets, W), value),
        seed=0,
        error_of="width",
        target=1e-6,
    )


def over_sets(W):
    """Some uniform law on a set attains the additive Bayes capacity."""
    tops = np.zeros((1, W.shape[1]))
    counts = np.zeros(1)
    for row in W:
        tops = np.concatenate([tops, np.maximum(tops, row)])
        counts = np.concatenate([counts, counts + 1.0])
    return ((tops[1:].sum(axis=1) - 1.0) / counts[1:]).max()


def with_dit(p, W):
    """Mutual information by dit, of a joint law that is made once."""
    import dit

    outcomes = [f"{chr(x + 48)}{chr(y + 48)}" for x, y in np.ndindex(*W.shape)]
    law = dit.Distribution(outcomes, (p[:, None] * W).reshape(-1))
    return lambda: math.log(2) * dit.shannon.mutual_information(law, [0], [1])


@pytest.mark.parametrize("size", [8, 32])
def test_information(versus, size):
    """What dit has of it."""
    W, p = instances.channel(size), instances.prior(size)
    versus(
        "mutual information, dit",
        f"random {size} x {size}",
        ours(partial(fp.mutual_information, fp.Channel(W), fp.Dense(p)), value),
        peer("dit", partial(with_dit, p, W), value, needs="dit", made=True),
        seed=0,
    )
