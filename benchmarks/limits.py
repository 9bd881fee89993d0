"""Limits of the capacities about individuals: how wide each bracket is, and how long it takes.

    python benchmarks/limits.py [WORDS ...] [--before OLD.json] [--save NEW.json] [--processor]
    python benchmarks/limits.py --counts

Every question is asked once, with a time limit of 10 seconds, some five minutes in all. Beside the
answers stand those of a file that ``--save`` wrote, given by ``--before``. By default these are the
widths that were reported of earlier versions (``limits_before.json``), which are not all of one
version, and which this script did not measure. Questions that a version refuses are printed with
the name of the error. Given words choose the questions that contain one of them.
``--processor`` counts seconds of the processor in place of those on the wall, for machines that
have other work to do. ``--counts`` prints the table of large counts on the page
"Individuals" of the documentation in place of all this.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import fastpriv as fp
from fastpriv._core import clock

LIMIT = 10.0
BIT = [[0.8, 0.2], [0.4, 0.6]]


def random_rows(rows: int, outputs: int, sharpness: float = 0.5) -> Any:
    """Random output laws, the same in every run: sharp by default, flat for large numbers."""
    return np.random.default_rng(1).dirichlet(np.full(outputs, sharpness), rows)


def geometric(answers: int, epsilon: float = 1.0) -> Any:
    """Two-sided geometric noise of ratio e^-epsilon on answers, cut off at both ends."""
    step = np.abs(np.subtract.outer(np.arange(answers), np.arange(answers)))
    law = np.exp(-epsilon * step)
    return law / law.sum(axis=1, keepdims=True)


def individual(channel: Any, *given: Any) -> fp.Bracket:
    return fp.individual_capacity(channel, *given, time_limit=LIMIT)


def cross(channel: Any, k: int) -> fp.Bracket:
    return fp.cross_capacity(channel, k, time_limit=LIMIT)


def group(channel: Any, k: int) -> fp.Bracket:
    return fp.group_capacity(channel, k, time_limit=LIMIT)


def constrained(channel: Any, share: float) -> fp.Bracket:
    """C_1 under an entropy of at least a share of the largest."""
    b = share * math.log(channel.space.size)
    return fp.constrained_capacity(channel, b, time_limit=LIMIT)


#: Rows, epsilon and the share of the largest entropy, of counts with geometric noise.
COUNTS = [(50, 0.1, 0.5), (50, 0.1, 0.9), (200, 0.02, 0.5), (200, 0.02, 0.9), (1000, 0.005, 0.9)]
TERNARY = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]]
WEAK = 0.2 * np.array(TERNARY) + 0.8 * np.mean(TERNARY, axis=0)
E_D = fp.HammingChannel
QUESTIONS: dict[str, Callable[[], fp.Bracket]] = {
    "C_1 of E_d(5, 10, 0.5)": lambda: individual(E_D(5, 10, 0.5)),
    "C_1 of E_d(6, 3, 1)": lambda: individual(E_D(6, 3, 1.0)),
    "C_1 of E_d(50, 5, 0.1)": lambda: individual(E_D(50, 5, 0.1)),
    "C_1 of E_d(2000, 3, 0.02)": lambda: individual(E_D(2000, 3, 0.02)),
    "C_1 of E_d(10^6, 3, 0.02)": lambda: individual(E_D(10**6, 3, 0.02)),
    "C_1 of E_d(100, 10, 0.3)": lambda: individual(E_D(100, 10, 0.3)),
    "C_2 of E_d(20, 3, 0.3)": lambda: fp.group_capacity(E_D(20, 3, 0.3), 2, time_limit=LIMIT),
    "cross, 2 of E_d(20, 3, 0.3)": lambda: cross(E_D(20, 3, 0.3), 2),
    "cross, 3 of E_d(20, 5, 0.3)": lambda: cross(E_D(20, 5, 0.3), 3),
    "C_1 of 11 bits, one channel": lambda: individual(fp.ProductChannel([BIT] * 11)),
    "C_1 of 40 bits, one channel": lambda: individual(fp.ProductChannel([BIT] * 40)),
    "C_1 of 600 bits, one channel": lambda: individual(fp.ProductChannel([BIT] * 600)),
    "C_1, independent, 3^6 x 16": lambda: individual(
        fp.Channel(random_rows(729, 16), [3] * 6), "independent"
    ),
    "C_1, independent, count of 1000": lambda: individual(
        fp.QueryChannel.count(1000, random_rows(1001, 16)), "independent"
    ),
    "C_1, common chance, 2^10 x 16": lambda: individual(
        fp.Channel(random_rows(1024, 16), [2] * 10), fp.PriorSet.iid_interval(10, 0.1)
    ),
    "C_1, common chance, count of 200": lambda: individual(
        fp.QueryChannel.count(200, random_rows(201, 16)), fp.PriorSet.iid_interval(200, 0.1)
    ),
    "C_1, box of bits, 2^10 x 16": lambda: individual(
        fp.Channel(random_rows(1024, 16), [2] * 10),
        fp.PriorSet.row_box([0.2, 0.3], [0.7, 0.8], 10),
    ),
    "C_1, 3^6 x 16": lambda: individual(fp.Channel(random_rows(729, 16), [3] * 6)),
    "C_1, 3^7 x 8": lambda: individual(fp.Channel(random_rows(2187, 8), [3] * 7)),
    "C_1, 3^6 x 8, flat": lambda: individual(fp.Channel(random_rows(729, 8, 20.0), [3] * 6)),
    "C_1, 4^4 x 8": lambda: individual(fp.Channel(random_rows(256, 8), [4] * 4)),
    "C_1, 4^5 x 16": lambda: individual(fp.Channel(random_rows(1024, 16), [4] * 5)),
    "C_1, 3-ary product, n = 5": lambda: individual(fp.ProductChannel([TERNARY] * 5)),
    "C_1, 3-ary product, n = 12": lambda: individual(fp.ProductChannel([TERNARY] * 12)),
    "C_1, 100 weak rows of 3": lambda: individual(fp.ProductChannel([WEAK] * 100)),
    "C_2, 2^8 x 16": lambda: group(fp.Channel(random_rows(256, 16), [2] * 8), 2),
    "C_2, 2^8 x 16, flat": lambda: group(fp.Channel(random_rows(256, 16, 20.0), [2] * 8), 2),
    "C_3, 2^7 x 8": lambda: group(fp.Channel(random_rows(128, 8), [2] * 7), 3),
    "C_2 of E_d(5, 2, 1)": lambda: group(E_D(5, 2, 1.0), 2),
    "C_2 of E_d(30, 2, 0.5)": lambda: group(E_D(30, 2, 0.5), 2),
    "C_1^b of E_d(4, 2, 1), b = 0.5": lambda: constrained(E_D(4, 2, 1.0), 0.5),
    "C_1^b of E_d(4, 2, 1), b = 0.9": lambda: constrained(E_D(4, 2, 1.0), 0.9),
    "C_1^b, 2^4 x 16, b = 0.5": lambda: constrained(fp.Channel(random_rows(16, 16), [2] * 4), 0.5),
    "C_1^b, 2^4 x 16, b = 0.9": lambda: constrained(fp.Channel(random_rows(16, 16), [2] * 4), 0.9),
    "C_1^b, 2^6 x 8, b = 0.7": lambda: constrained(fp.Channel(random_rows(64, 8), [2] * 6), 0.7),
    "C_1^b, 4^2 x 4, b = 0.7": lambda: constrained(fp.Channel(random_rows(16, 4), [4] * 2), 0.7),
    "C_1^b, count of 50, b = 0.5": lambda: constrained(
        fp.QueryChannel.count(50, geometric(51)), 0.5
    ),
    "C_1^b, count of 2000, b = 0.5": lambda: constrained(
        fp.QueryChannel.count(2000, random_rows(2001, 2)), 0.5
    ),
}


def measured(ask: Callable[[], fp.Bracket], seconds: Callable[[], float]) -> tuple[str, str]:
    """Return the relative width and the seconds of a question."""
    start = seconds()
    try:
        bracket = ask()
        width = f"{bracket.width / max(bracket.upper, 1e-300):.1e}"
    except (TypeError, fp.FastprivError) as error:
        width = type(error).__name__
    return width, f"{seconds() - start:.2f}"


def two_counts(matrix: Any, beta: float) -> float:
    """Capacity of the counts alpha n and (1 - alpha) n with h(alpha) = beta ln 2, interpolated."""
    n, (low, high) = len(matrix) - 1, (1e-12, 0.5)
    for _ in range(60):
        alpha = 0.5 * (low + high)
        entropy = -alpha * math.log2(alpha) - (1.0 - alpha) * math.log2(1.0 - alpha)
        low, high = (low, alpha) if entropy >= beta else (alpha, high)
    laws = []
    for place in (high * n, n - high * n):
        k = min(int(place), n - 1)
        laws.append((k + 1 - place) * matrix[k] + (place - k) * matrix[k + 1])
    return fp.channel_capacity(np.array(laws)).lower


def counts() -> None:
    """Print the table of large counts."""
    for n, epsilon, beta in COUNTS:
        matrix = geometric(n + 1, epsilon)
        channel = fp.QueryChannel.count(n, matrix)
        bracket = fp.constrained_capacity(channel, beta * n * math.log(2.0), time_limit=60.0)
        ends = f"{bracket.lower:.5f} | {bracket.upper:.5f}"
        print(f"| {n} | {epsilon} | {beta} | {ends} | {two_counts(matrix, beta):.5f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--processor", action="store_true")
    before = Path(__file__).with_name("limits_before.json")
    parser.add_argument("--before", type=Path, default=before)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--counts", action="store_true")
    given = parser.parse_args()
    if given.counts:
        return counts()
    seconds = time.process_time if given.processor else time.perf_counter
    clock.time = SimpleNamespace(monotonic=seconds)  # type: ignore[assignment]
    fp.individual_capacity(np.eye(3))  # loads kernels
    old, now = json.loads(given.before.read_text()), {}
    print(f"{'question':36}{'width before':>14}{'s before':>10}{'width':>12}{'s':>8}")
    for name, ask in QUESTIONS.items():
        if given.words and not any(word in name for word in given.words):
            continue
        first = old.get(name, ("", ""))
        now[name] = width, spent = measured(ask, seconds)
        print(f"{name:36}{first[0]:>14}{first[1]:>10}{width:>12}{spent:>8}", flush=True)
    if given.save:
        given.save.write_text(json.dumps(now, indent=1))


if __name__ == "__main__":
    main()
