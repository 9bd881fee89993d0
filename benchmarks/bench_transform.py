"""The E_d output law and its inverse, beside a copy of the same vector."""

import math

import numpy as np

import instances
from _bench import ours, run, yardstick
from fastpriv._core.transform import mix
from fastpriv._structure.rows import Symmetric

SIZES = {
    **{f"2^{k}": (2,) * k for k in (10, 12, 14, 16, 18, 20, 22, 24, 26)},
    "3^15": (3,) * 15,
    "4^12": (4,) * 12,
    "5^10": (5,) * 10,
    "10^7": (10,) * 7,
    "(2,3,2,7)^3": (2, 3, 2, 7) * 3,
}


def main(bench):
    """Forward and inverse of every size."""
    for name, sizes in SIZES.items():
        size = math.prod(sizes)
        if bench.quick and size > 2**16:
            continue
        v = instances.uniform(0, size)
        other = v.copy()
        kernels = [Symmetric(m, 3.0) for m in sizes]
        for question, steps in (
            ("output law of E_d", [k.mixing for k in kernels]),
            ("inverse of E_d", [k.unmixing for k in kernels]),
        ):

            def work(v=v, other=other, sizes=sizes, steps=steps):
                np.copyto(v, other)  # undoes the last transform, so that numbers stay ordinary
                mix(v, sizes, steps)

            # The copy is part of both: what is compared is the transform and a copy with a copy.
            bench.compare(
                question,
                f"N = {name}",
                ours(work),
                yardstick("np.copyto", lambda v=v, other=other: np.copyto(v, other)),
                seed=0,
                headline=name == "2^24" and question.startswith("output"),
            )


if __name__ == "__main__":
    run(main)
