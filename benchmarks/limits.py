"""Limits of the capacities about individuals: how wide each bracket is, and how long it takes.

    python benchmarks/limits.py [--before OLD.json] [--save NEW.json]

Every question is asked once, with a time limit of 10 seconds. ``--save`` keeps the numbers, and
``--before`` prints those of an earlier version beside them. Questions that a version refuses are
printed with the name of the error.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastpriv as fp

LIMIT = 10.0
BIT = [[0.8, 0.2], [0.4, 0.6]]


def random_rows(rows: int, outputs: int) -> Any:
    """Sharp random output laws, the same in every run."""
    return np.random.default_rng(1).dirichlet(np.full(outputs, 0.5), rows)


def individual(channel: Any, *given: Any) -> fp.Bracket:
    return fp.individual_capacity(channel, *given, time_limit=LIMIT)


def cross(channel: Any, k: int) -> fp.Bracket:
    return fp.cross_capacity(channel, k, time_limit=LIMIT)


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
    "C_1, 3^6 x 16": lambda: individual(fp.Channel(random_rows(729, 16), [3] * 6)),
}


def measure() -> dict[str, tuple[str, str]]:
    """Return the relative width and the seconds of every question."""
    fp.individual_capacity(np.eye(3))  # loads kernels
    told = {}
    for name, ask in QUESTIONS.items():
        start = time.perf_counter()
        try:
            bracket = ask()
            width = f"{bracket.width / max(bracket.upper, 1e-300):.1e}"
        except (TypeError, fp.FastprivError) as error:
            width = type(error).__name__
        told[name] = width, f"{time.perf_counter() - start:.2f}"
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    now = measure()
    old = json.loads(given.before.read_text()) if given.before else {}
    print(f"{'question':34}{'width before':>14}{'s before':>10}{'width':>12}{'s':>8}")
    for name, (width, seconds) in now.items():
        first = old.get(name, ("", ""))
        print(f"{name:34}{first[0]:>14}{first[1]:>10}{width:>12}{seconds:>8}")
    if given.save:
        given.save.write_text(json.dumps(now, indent=1))


if __name__ == "__main__":
    main()
