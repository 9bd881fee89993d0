"""Levels that are what is left of larger logarithms."""

import mpmath
import pytest

import fastpriv as fp
import oracles as o

#: The law of an output, epsilon, and a prior whose odds nearly cancel what the output says.
CASES = {
    "one value comes out": (
        fp.Dense([1.0, 0.0], [1, 2]),
        2.75,
        fp.Product([[1.0], [0.5, 0.49999999999999994]]),
    ),
    "odds of three to two": (
        fp.Product([[3 / 7, 1 / 7, 3 / 7], [1.0 - 2.0**-30, 2.0**-30]]),
        1e-8,
        fp.Dense([0.1875, 0.1875, 0.1875, 0.1875, 0.125, 0.125], [3, 2]),
    ),
    "odds against the tilt": (
        fp.Dense([1.0 - 2.0**-50, 2.0**-50], [2]),
        1.0,
        fp.Dense([0.5, 0.5], [2]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_identifiability_is_not_below_the_truth(name):
    law, epsilon, prior = CASES[name]
    sizes = list(prior.space.sizes)
    with mpmath.workdps(80):
        W = o.tilted_matrix(o.normal(law.pmf()), sizes, epsilon)
        truth = o.identifiability_level(W, o.normal(prior.pmf()), sizes)
        level = fp.identifiability_level(fp.TiltedChannel(law, epsilon), prior)
        assert mpmath.mpf(level) >= truth
        assert mpmath.mpf(level) <= truth * (1 + mpmath.mpf("1e-14")) + mpmath.mpf("1e-14")
