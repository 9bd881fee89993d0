"""The E_d output law and its inverse, beside a copy of the same vector."""

import math

import numpy as np
import pytest

import instances
from contenders import ours, sizes, yardstick
from fastpriv._core.transform import mix
from fastpriv._structure.rows import Symmetric

SMALL = {f"2^{k}": (2,) * k for k in (10, 12, 14, 16)}
LARGE = {
    **{f"2^{k}": (2,) * k for k in (18, 20, 22, 24, 26)},
    "3^15": (3,) * 15,
    "4^12": (4,) * 12,
    "5^10": (5,) * 10,
    "10^7": (10,) * 7,
    "(2,3,2,7)^3": (2, 3, 2, 7) * 3,
}


@pytest.mark.parametrize("question", ["output distribution of E_d", "inverse of E_d"])
@pytest.mark.parametrize("name", sizes(*SMALL, large=LARGE))
def test_transform(versus, name, question):
    """Forward and inverse of every size."""
    shape = (SMALL | LARGE)[name]
    v = instances.uniform(0, math.prod(shape))
    other = v.copy()
    kernels = [Symmetric(m, 3.0) for m in shape]
    forward = question == "output distribution of E_d"
    steps = [k.mixing if forward else k.unmixing for k in kernels]

    def work():
        np.copyto(v, other)  # undoes the last transform, so that numbers stay ordinary
        mix(v, shape, steps)

    # The copy is part of both: what is compared is the transform and a copy with a copy.
    versus(
        question,
        f"N = {name}",
        ours(work),
        yardstick("np.copyto", lambda: np.copyto(v, other)),
        seed=0,
    )
