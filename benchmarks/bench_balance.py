"""How tight the brackets of the constrained capacity get, and how long they take.

Run ``python benchmarks/bench_balance.py [seconds for each] [channels of a shape]``. For every shape
of up to 16 databases, random channels (Dirichlet rows: weight 1 is informative, 10 is noisy) and
four shares of the largest entropy: relative widths, median and worst, beside that of the two plain
bounds, I of the best prior found and min(C_1, max {I(X; Y): H(X) >= b}), and the median time.
"""

import math
import sys
import time

import numpy as np

import fastpriv as fp

SHAPES = [
    ((2, 2), 4),
    ((2, 2, 2), 2),
    ((2, 2, 2), 8),
    ((2, 2, 2, 2), 2),
    ((2, 2, 2, 2), 4),
    ((2, 2, 2, 2), 8),
    ((2, 2, 2, 2), 16),
    ((4, 4), 2),
    ((4, 4), 4),
    ((4, 4), 16),
    ((2, 8), 2),
    ((2, 8), 8),
    ((3, 4), 4),
    ((16,), 16),
]
SHARES = (0.5, 0.7, 0.9, 0.97)


def plain_upper(W, b):
    """min(C_1, ...) is the caller's; this is max {I(X; Y): H(X) >= b} of one row."""
    return fp.constrained_capacity(W, b).upper


def main(seconds=10.0, count=3):
    fp.warm_up()
    print(
        f"{'shape':<16}{'outputs':>8}{'weight':>8}{'b/ln N':>8}{'median':>10}{'worst':>10}", end=""
    )
    print(f"{'plain':>10}{'seconds':>9}")
    for sizes, outputs in SHAPES:
        for weight in (1.0, 10.0):
            rng = np.random.default_rng(outputs)
            size = math.prod(sizes)
            matrices = [rng.dirichlet(np.full(outputs, weight), size) for _ in range(count)]
            for share in SHARES:
                widths, plain, times = [], [], []
                for W in matrices:
                    b = share * math.log(size)
                    channel = fp.Channel(W, sizes)
                    start = time.perf_counter()
                    found = fp.constrained_capacity(channel, b, time_limit=seconds)
                    times.append(time.perf_counter() - start)
                    widths.append(found.width / found.lower)
                    most = min(fp.individual_capacity(channel).upper, plain_upper(W, b))
                    plain.append(most / found.lower - 1.0)
                name = "x".join(map(str, sizes))
                print(
                    f"{name:<16}{outputs:>8}{weight:>8.0f}{share:>8.2f}{np.median(widths):>10.2g}"
                    f"{max(widths):>10.2g}{np.median(plain):>10.2g}{np.median(times):>9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*[float(sys.argv[1])] if len(sys.argv) > 1 else [], *map(int, sys.argv[2:]))
