"""Time limits of all functions that take one: how long each goes on after its limit.

    python benchmarks/clocks.py [WORDS ...] [--limits 0 1 5]

Every question is asked of a large instance, with every limit. What is printed is the smaller of
the seconds on the wall and of the processor, as other work may run on the machine, and the
relative width of the bracket where there is one. Given words choose the questions that contain one
of them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fastpriv as fp

E_D = fp.HammingChannel
TERNARY = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]]
BIT = [[0.8, 0.2], [0.4, 0.6]]


def rows(count: int, outputs: int, sharpness: float = 0.5) -> Any:
    """Random output laws, the same in every run."""
    return np.random.default_rng(1).dirichlet(np.full(outputs, sharpness), count)


def channel(m: int, n: int, outputs: int, sharpness: float = 0.5) -> fp.Channel:
    return fp.Channel(rows(m**n, outputs, sharpness), [m] * n)


def count(n: int, outputs: int) -> fp.QueryChannel:
    return fp.QueryChannel.count(n, rows(n + 1, outputs))


def prior(size: int) -> Any:
    return np.random.default_rng(2).dirichlet(np.ones(size))


def joint(secrets: int, size: int) -> Any:
    return np.random.default_rng(3).dirichlet(np.ones(secrets * size)).reshape(secrets, size)


def distances(size: int) -> Any:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / size


ONE, GROUP, CROSS = fp.individual_capacity, fp.group_capacity, fp.cross_capacity
SETS = fp.PriorSet
QUESTIONS: dict[str, Callable[[float], Any]] = {
    "individual, 2^12 x 512": lambda s: ONE(channel(2, 12, 512), time_limit=s),
    "individual, 3^7 x 64": lambda s: ONE(channel(3, 7, 64), time_limit=s),
    "individual, 4^6 x 256": lambda s: ONE(channel(4, 6, 256), time_limit=s),
    "individual, count of 1200": lambda s: ONE(count(1200, 1201), time_limit=s),
    "individual, count of 20000": lambda s: ONE(count(20000, 64), time_limit=s),
    "individual, histogram": lambda s: ONE(
        fp.QueryChannel.histogram(60, 3, rows(1891, 64)), time_limit=s
    ),
    "individual, E_d(100, 10, 0.3)": lambda s: ONE(E_D(100, 10, 0.3), time_limit=s),
    "individual, E_d(2000, 3, 0.02)": lambda s: ONE(E_D(2000, 3, 0.02), time_limit=s),
    "individual, E_d(10^6, 5, 0.02)": lambda s: ONE(E_D(10**6, 5, 0.02), time_limit=s),
    "individual, E_d of many sizes": lambda s: ONE(E_D(3900, [2, 3, 4] * 1300, 0.1), time_limit=s),
    "individual, 600 bits": lambda s: ONE(fp.ProductChannel([BIT] * 600), time_limit=s),
    "individual, 60 bits x 3": lambda s: ONE(
        fp.ProductChannel([[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]] * 60), time_limit=s
    ),
    "individual, product 3-ary n=6": lambda s: ONE(fp.ProductChannel([TERNARY] * 6), time_limit=s),
    "individual, product 3-ary n=100": lambda s: ONE(
        fp.ProductChannel([TERNARY] * 100), time_limit=s
    ),
    "individual, product 3-ary n=700": lambda s: ONE(
        fp.ProductChannel([TERNARY] * 700), time_limit=s
    ),
    "individual, mixed product": lambda s: ONE(
        fp.ProductChannel([TERNARY] * 6 + [BIT] * 10), time_limit=s
    ),
    "individual, independent, 3^8 x 64": lambda s: ONE(
        channel(3, 8, 64), "independent", time_limit=s
    ),
    "individual, independent, count": lambda s: ONE(count(5000, 512), "independent", time_limit=s),
    "individual, markov, 2^12 x 64": lambda s: ONE(channel(2, 12, 64), "markov", time_limit=s),
    "individual, bernoulli, 2^12 x 64": lambda s: ONE(
        channel(2, 12, 64), SETS.bernoulli_interval(12, 0.2), time_limit=s
    ),
    "individual, bernoulli, count": lambda s: ONE(
        count(1000, 256), SETS.bernoulli_interval(1000, 0.2), time_limit=s
    ),
    "individual, common chance, 2^12 x 64": lambda s: ONE(
        channel(2, 12, 64), SETS.iid_interval(12, 0.2), time_limit=s
    ),
    "individual, common chance, count": lambda s: ONE(
        count(1000, 256), SETS.iid_interval(1000, 0.2), time_limit=s
    ),
    "individual, row box, 2^10 x 32": lambda s: ONE(
        channel(2, 10, 32), SETS.row_box([0.2, 0.3], [0.7, 0.8], 10), time_limit=s
    ),
    "individual, min entropy, 2^8 x 64": lambda s: ONE(
        channel(2, 8, 64), SETS.min_entropy(256, 2.0), time_limit=s
    ),
    "individual, row box, 3^4 x 32": lambda s: ONE(
        channel(3, 4, 32), SETS.row_box([0.1, 0.2, 0.1], [0.6, 0.7, 0.5], 4), time_limit=s
    ),
    "leakage, entropy, row, 2^8 x 64": lambda s: fp.pml_level(
        channel(2, 8, 64), SETS.entropy(256, 3.0), row=0, time_limit=s
    ),
    "leakage, ball, worst row, 3^5 x 32": lambda s: fp.pml_level(
        channel(3, 5, 32), SETS.total_variation(prior(243), 0.1), row="worst", time_limit=s
    ),
    "leakage, polytope, row, 2^6 x 32": lambda s: fp.pml_level(
        channel(2, 6, 32), SETS.polytope(np.eye(64), np.full(64, 0.1)), row=0, time_limit=s
    ),
    "leakage, common chance, count": lambda s: fp.pml_level(
        count(1000, 256), SETS.iid_interval(1000, 0.2), row=0, time_limit=s
    ),
    "group 2, 2^10 x 64": lambda s: GROUP(channel(2, 10, 64), 2, time_limit=s),
    "group 4, 2^9 x 64": lambda s: GROUP(channel(2, 9, 64), 4, time_limit=s),
    "group 2, count of 1200": lambda s: GROUP(count(1200, 1201), 2, time_limit=s),
    "group 2, E_d(30, 2, 0.5)": lambda s: GROUP(E_D(30, 2, 0.5), 2, time_limit=s),
    "group 3, E_d(200, 3, 0.1)": lambda s: GROUP(E_D(200, 3, 0.1), 3, time_limit=s),
    "group 3, E_d(9, 2, 0.5)": lambda s: GROUP(E_D(9, 2, 0.5), 3, time_limit=s),
    "group 2, product 3-ary n=100": lambda s: GROUP(
        fp.ProductChannel([TERNARY] * 100), 2, time_limit=s
    ),
    "cross 3, 2^11 x 64": lambda s: CROSS(channel(2, 11, 64), 3, time_limit=s),
    "cross 5, E_d(40, 7, 0.3)": lambda s: CROSS(E_D(40, 7, 0.3), 5, time_limit=s),
    "cross 8, E_d(100, 10, 0.3)": lambda s: CROSS(E_D(100, 10, 0.3), 8, time_limit=s),
    "cross 6, E_d(9, 2, 0.3)": lambda s: CROSS(E_D(9, 2, 0.3), 6, time_limit=s),
    "cross 3, product 3-ary n=100": lambda s: CROSS(
        fp.ProductChannel([TERNARY] * 100), 3, time_limit=s
    ),
    "constrained, 2^8 x 16": lambda s: fp.constrained_capacity(
        channel(2, 8, 16), 3.0, time_limit=s
    ),
    "constrained, 2^8 x 16, k = 2": lambda s: fp.constrained_capacity(
        channel(2, 8, 16), 3.0, k=2, time_limit=s
    ),
    "constrained, count of 1000": lambda s: fp.constrained_capacity(
        count(1000, 64), 300.0, time_limit=s
    ),
    "constrained, E_d(10, 2, 0.5)": lambda s: fp.constrained_capacity(
        E_D(10, 2, 0.5), 3.0, time_limit=s
    ),
    "constrained, several b": lambda s: fp.constrained_capacity(
        channel(2, 6, 16), [1.0, 2.0, 3.0, 3.5], time_limit=s
    ),
    "balance, 2^10 x 64": lambda s: fp.balance_function(channel(2, 10, 64), 0.3, time_limit=s),
    "balance, count of 1000": lambda s: fp.balance_function(count(1000, 64), 0.3, time_limit=s),
    "sdpi, 64 x 64": lambda s: fp.sdpi_constant(rows(64, 64), prior(64), time_limit=s),
    "sdpi, 800 x 800": lambda s: fp.sdpi_constant(rows(800, 800), prior(800), time_limit=s),
    "g capacity, 64 x 64": lambda s: fp.g_capacity(
        rows(64, 64), np.random.default_rng(4).random((20, 64)), time_limit=s
    ),
    "additive g capacity, 64 x 64": lambda s: fp.additive_g_capacity(
        rows(64, 64), np.random.default_rng(4).random((20, 64)), time_limit=s
    ),
    "composition bound": lambda s: fp.composition_bound(
        channel(3, 6, 32), channel(3, 6, 48), time_limit=s
    ),
    "constrained composition": lambda s: fp.constrained_composition_bound(
        channel(2, 6, 16), channel(2, 6, 12), b=2.0, time_limit=s
    ),
    "group bound": lambda s: fp.group_bound(channel(3, 7, 32), 2, time_limit=s),
    "two data sets": lambda s: fp.two_dataset_bound(
        channel(3, 6, 32), channel(3, 6, 48), time_limit=s
    ),
    "refines, 200": lambda s: fp.refines(
        rows(200, 100), rows(200, 100) @ rows(100, 100), time_limit=s
    ),
    "gaussian query": lambda s: fp.mechanisms.gaussian_query_capacity(
        np.random.default_rng(5).normal(0, 2, 3**6), 1.0, [3] * 6, time_limit=s
    ),
    "laplace query": lambda s: fp.mechanisms.laplace_query_capacity(
        np.random.default_rng(5).normal(0, 2, 3**6), 1.0, [3] * 6, time_limit=s
    ),
    "audit, 2^10 x 64": lambda s: fp.audit(channel(2, 10, 64), time_limit=s),
    "audit, a chain of 10^6": lambda s: fp.audit(
        E_D(10**6, 2, 0.5), fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 10**6), time_limit=s
    ),
    "compare, 2^10 x 64": lambda s: fp.compare(
        channel(2, 10, 64), channel(2, 10, 48), time_limit=s
    ),
    "solve, dp, 2^6": lambda s: fp.solve_pd_dp(fp.Dense(prior(64), [2] * 6), 1.0, time_limit=s),
    "solve, capacity, 2^4": lambda s: fp.solve_pd_capacity(
        fp.Dense(prior(16), [2] * 4), 0.1, time_limit=s
    ),
    "solve, pml, 2^6": lambda s: fp.solve_pd_pml(fp.Dense(prior(64), [2] * 6), 1.0, time_limit=s),
    "solve, capacity, 16 bits by types": lambda s: fp.solve_pd_capacity(
        fp.Exchangeable.beta_binomial(16, 2.0, 3.0), 0.1, time_limit=s
    ),
    "solve, pml, 50 bits by types": lambda s: fp.solve_pd_pml(
        fp.Exchangeable.beta_binomial(50, 2.0, 3.0), 1.0, time_limit=s
    ),
    "solve, information, 2^10": lambda s: fp.solve_pd_mip(
        fp.Dense(prior(1024), [2] * 10), 0.5, time_limit=s
    ),
    "design, mapping": lambda s: fp.design_mapping(
        joint(8, 100), distances(100), 0.02, time_limit=s
    ),
    "design, worst case": lambda s: fp.design_worst_case(
        prior(24), 0.1, distances(24), time_limit=s
    ),
    "perfect privacy": lambda s: fp.perfect_privacy(joint(8, 100), distances(100), time_limit=s),
    "tradeoff curve": lambda s: fp.tradeoff_curve(fp.Dense(prior(64), [2] * 6), time_limit=s),
}


def asked(ask: Callable[[float], Any], limit: float) -> tuple[float, float, str]:
    """Return the seconds on the wall and of the processor, and the width or an error's name."""
    wall, processor = time.perf_counter(), time.process_time()
    try:
        answer = ask(limit)
        width = (
            f"{answer.width / max(answer.upper, 1e-300):.1e}" if hasattr(answer, "width") else ""
        )
    except Exception as error:
        width = type(error).__name__
    return time.perf_counter() - wall, time.process_time() - processor, width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--limits", nargs="+", type=float, default=[0.0, 1.0, 5.0])
    given = parser.parse_args()
    for name, ask in QUESTIONS.items():
        if given.words and not any(word in name for word in given.words):
            continue
        line, late = [], -math.inf
        for limit in given.limits:
            wall, processor, width = asked(ask, limit)
            late = max(late, min(wall, processor) - limit)
            line.append(f"{limit:g}: {wall:.1f}/{processor:.1f} s {width}")
        print(f"{name:36} {'LATE' if late > 1.0 else '':5}" + "   ".join(line), flush=True)


if __name__ == "__main__":
    main()
