"""How tight the brackets of the constrained capacity get, and how long they take.

Random channels of up to 16 databases (Dirichlet rows: weight 1 is informative, 10 is noisy) and
adversaries with nine tenths of the largest entropy. The error is the relative width of the bracket;
the plain bounds, I of the best prior found and min(C_1, max {I(X; Y): H(X) >= b}), stand beside it.
"""

import math

import pytest

import fastpriv as fp
import instances
from contenders import ours, sizes, yardstick

#: Shapes and number of outputs.
SMALL = [((2, 2), 4), ((2, 2, 2), 8), ((2, 2, 2, 2), 2), ((16,), 16)]
LARGE = [((2, 2, 2, 2), 4), ((2, 2, 2, 2), 8), ((4, 4), 4), ((2, 8), 8), ((3, 4), 4)]
SECONDS = 3.0


def plain(channel, W, b):
    """The bound without a search."""
    return min(fp.individual_capacity(channel).upper, fp.constrained_capacity(W, b).upper)


@pytest.mark.parametrize("weight", [1, 10])
@pytest.mark.parametrize(("shape", "outputs"), sizes(*SMALL, large=LARGE))
def test_constrained_capacity(versus, shape, outputs, weight):
    """One channel for each shape and weight."""
    size = math.prod(shape)
    W = instances.channel(size, outputs, weight=weight)
    channel = fp.Channel(W, shape)
    b = 0.9 * math.log(size)
    bracket = fp.constrained_capacity(channel, b, time_limit=SECONDS)

    def width(most):
        return {"value": most, "error": most / bracket.lower - 1.0}

    versus(
        "constrained capacity to 1e-3",
        f"rows of {shape}, {outputs} outputs, weight {weight}, b = 0.9 ln N",
        ours(
            lambda: fp.constrained_capacity(channel, b, time_limit=SECONDS),
            lambda bracket: {"value": bracket.lower, "error": bracket.width / bracket.lower},
        ),
        yardstick("plain bounds", lambda: plain(channel, W, b), judge=width),
        seed=0,
        error_of="relative width",
        target=1e-3,
    )
