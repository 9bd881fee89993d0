"""Measures of many small channels: one call against vectorised numpy and a loop of single calls.

The numpy forms are the definitions, without checks, without care for small numbers and without
rounding up. Ours includes all of these. A copy of the stack shows the speed of memory. The loop is
over the same channels, as ``Channel`` and ``Dense`` objects that were made before.
"""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes, yardstick

EPSILON = 0.5
#: Size of the channels that are also measured one by one, and their number.
LOOPED, FEW = 8, 2_000


def ratios(tops, bottoms):
    """Log of the largest ratio of each channel."""
    return np.log((tops / bottoms).max(axis=1))


def law(W, P):
    """Output laws of all channels."""
    return np.matmul(P[:, None, :], W)[:, 0]


def information(W, P):
    """I(X; Y) of all channels."""
    return (P[:, :, None] * W * np.log(W / law(W, P)[:, None])).sum(axis=(1, 2))


def entropy(P, axis=1):
    """Entropies of all laws."""
    return -(P * np.log(P)).sum(axis=axis)


def identifiability(W, P):
    """Largest log-ratio of posteriors."""
    joint = P[:, :, None] * W
    return ratios(joint.max(axis=1), joint.min(axis=1))


def information_privacy(W, P):
    """Largest |ln p(x|y)/p(x)|."""
    q = law(W, P)
    return np.maximum(ratios(W.max(axis=1), q), ratios(q, W.min(axis=1)))


def worst_factor(W, P):
    """Largest fall of the entropy at one output, over the entropy."""
    posterior = P[:, :, None] * W / law(W, P)[:, None]
    return 1.0 - entropy(posterior).min(axis=1) / entropy(P)


def hockey_stick(W):
    """Largest sum of (W_x - e^epsilon W_x')_+, one x at a time."""
    worst = np.zeros(len(W))
    for x in range(W.shape[1]):
        gain = np.maximum(W[:, x, None] - np.exp(EPSILON) * W, 0.0).sum(axis=2)
        worst = np.maximum(worst, gain.max(axis=1))
    return worst


#: Public measure, its further arguments, whether it takes a prior, and the numpy form.
MEASURES = [
    (fp.dp_level, (), False, lambda W: ratios(W.max(axis=1), W.min(axis=1))),
    (fp.maximal_leakage, (), False, lambda W: np.log(W.max(axis=1).sum(axis=1))),
    (fp.hockey_stick, (EPSILON,), False, hockey_stick),
    (fp.identifiability_level, (), True, identifiability),
    (fp.mutual_information, (), True, information),
    (fp.pml_level, (), True, lambda W, P: ratios(W.max(axis=1), law(W, P))),
    (fp.information_privacy_level, (), True, information_privacy),
    (fp.leakage_factor, (), True, lambda W, P: information(W, P) / entropy(P)),
    (fp.worst_leakage_factor, (), True, worst_factor),
]


def loop(measure, further, stack, *priors):
    """Ask for one channel after the other."""
    return [measure(*each, *further) for each in zip(stack, *priors, strict=True)]


@pytest.mark.parametrize("size", sizes(8, large=[2, 64]))
def test_stack(versus, size):
    """Every measure on stacks of channels of one size, and all of them as a table."""
    count = min((1 << 22) // size**2, 100_000)
    stack = instances.channels(count, size, size)
    priors = instances.channels(count, 1, size)[:, 0].copy()
    instance = f"{count:,} random {size} x {size}"
    for measure, further, takes_prior, plain in MEASURES:
        given = (stack, priors) if takes_prior else (stack,)
        versus(
            measure.__name__,
            instance,
            ours(partial(measure, *given, *further), items=count),
            peer("numpy", partial(plain, *given), items=count),
            yardstick("copy of the stack", stack.copy, count),
            seed=0,
            unit="channel",
        )
    if size == LOOPED:
        single = [fp.Channel(W) for W in stack[:FEW]], [fp.Dense(p) for p in priors[:FEW]]
        for measure, further, takes_prior, _ in MEASURES:
            given = (stack[:FEW], priors[:FEW]) if takes_prior else (stack[:FEW],)
            objects = single if takes_prior else single[:1]
            versus(
                measure.__name__,
                f"{FEW:,} random {size} x {size}",
                ours(partial(measure, *given, *further), items=FEW),
                ours(partial(loop, measure, further, *objects), items=FEW, name="fastpriv, a loop"),
                seed=0,
                unit="channel",
            )
    versus(
        "audit_many",
        instance,
        ours(partial(fp.audit_many, stack, priors), items=count),
        seed=0,
        unit="channel",
    )
