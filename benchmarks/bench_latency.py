"""Calls on a 64 x 64 dense channel, in microseconds, against plain numpy in the same run.

Run ``python benchmarks/bench_latency.py`` for the table. The cost of validation is the
constructor's, shown apart: measures trust what it has checked.
"""

import time

import numpy as np
import pytest

import fastpriv as fp

RNG = np.random.default_rng(0)
MATRIX = RNG.dirichlet(np.ones(64), 64)
PMF = RNG.dirichlet(np.ones(64))


def plain_dp_level(matrix, sizes):
    """Worst log-ratio between rows that differ in one digit, by numpy."""
    worst = 1.0
    cube = matrix.reshape(*sizes, -1)
    for axis in range(len(sizes)):
        worst = max(worst, (cube.max(axis=axis) / cube.min(axis=axis)).max())
    return np.log(worst)


def plain_information(matrix, pmf):
    """I(X; Y) from the definition, by numpy."""
    output = pmf @ matrix
    return (pmf[:, None] * matrix * np.log(matrix / output)).sum()


def calls():
    """(name, ours, plain) triples."""
    one, bits = fp.Channel(MATRIX), fp.Channel(MATRIX, [2] * 6)
    flat, rows = fp.Dense(PMF), fp.Dense(PMF, [2] * 6)
    return [
        ("dp_level, one row", lambda: fp.dp_level(one), lambda: plain_dp_level(MATRIX, [64])),
        ("dp_level, six bits", lambda: fp.dp_level(bits), lambda: plain_dp_level(MATRIX, [2] * 6)),
        (
            "mutual_information",
            lambda: fp.mutual_information(one, flat),
            lambda: plain_information(MATRIX, PMF),
        ),
        ("output", lambda: one.output(flat), lambda: PMF @ MATRIX),
        (
            "identifiability_level, six bits",
            lambda: fp.identifiability_level(bits, rows),
            lambda: plain_dp_level(PMF[:, None] * MATRIX, [2] * 6),
        ),
        ("Channel(matrix) (validation)", lambda: fp.Channel(MATRIX), lambda: MATRIX.copy()),
        ("Dense(pmf) (validation)", lambda: fp.Dense(PMF), lambda: PMF.copy()),
    ]


def microseconds(call, repeats=40, number=200):
    """Least time per call over several batches."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / number


@pytest.mark.parametrize("name", [c[0] for c in calls()])
def test_latency(benchmark, name):
    benchmark(next(ours for title, ours, _ in calls() if title == name))


if __name__ == "__main__":
    print(f"{'call':<34}{'fastpriv us':>12}{'numpy us':>10}{'ratio':>8}")
    for title, ours, plain in calls():
        ours(), plain()
        a, b = microseconds(ours), microseconds(plain)
        print(f"{title:<34}{a:>12.2f}{b:>10.2f}{b / a:>8.1f}")
