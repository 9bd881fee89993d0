"""How tight the brackets of the constrained capacity get, and how long they take.

Random channels of up to 16 databases (Dirichlet rows: weight 1 is informative, 10 is noisy) and
adversaries with nine tenths of the largest entropy. The error is the relative width of the bracket;
the plain bounds, I of the best prior found and min(C_1, max {I(X; Y): H(X) >= b}), stand beside it.
"""

import math

import fastpriv as fp
import instances
from _bench import ours, run, yardstick

#: Shapes, number of outputs, and whether a quick run has them.
SHAPES = [
    ((2, 2), 4, True),
    ((2, 2, 2), 8, True),
    ((2, 2, 2, 2), 2, True),
    ((2, 2, 2, 2), 4, False),
    ((2, 2, 2, 2), 8, False),
    ((4, 4), 4, False),
    ((2, 8), 8, False),
    ((3, 4), 4, False),
    ((16,), 16, True),
]


def plain(channel, W, b):
    """The bound without a search."""
    return min(fp.individual_capacity(channel).upper, fp.constrained_capacity(W, b).upper)


def main(bench):
    """One channel for each shape, weight and share."""
    seconds = bench.sizes(1.0, 3.0)
    for sizes, outputs, small in SHAPES:
        if bench.quick and not small:
            continue
        for weight in (1, 10):
            size = math.prod(sizes)
            W = instances.channel(size, outputs, weight=weight)
            channel = fp.Channel(W, sizes)
            b = 0.9 * math.log(size)
            found = fp.constrained_capacity(channel, b, time_limit=seconds)

            def width(most, low=found.lower):
                return {"value": most, "error": most / low - 1.0}

            bench.compare(
                "constrained capacity to 1e-3",
                f"rows of {sizes}, {outputs} outputs, weight {weight}, b = 0.9 ln N",
                ours(
                    lambda c=channel, b=b: fp.constrained_capacity(c, b, time_limit=seconds),
                    lambda found: {"value": found.lower, "error": found.width / found.lower},
                ),
                yardstick("plain bounds", lambda c=channel, W=W, b=b: plain(c, W, b), judge=width),
                seed=0,
                error_of="relative width",
                target=1e-3,
            )


if __name__ == "__main__":
    run(main)
