"""Where the exact simplex starts: the patterns in a vertex that HiGHS found."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.highs import Rows, minimise
from fastpriv._core.validation import Floats
from fastpriv.design.exact.flows import Pattern, normal
from fastpriv.design.exact.program import Output, Program
from fastpriv.design.exact.simplex import Ray
from fastpriv.design.exact.trees import components
from fastpriv.errors import SolverFailure

#: Levels between which floats tell the powers apart; beyond, the pattern at the end is a start.
LEAST, MOST = 0.02, 9.0
#: Fractional parts of exponents closer than this are one component's.
_CLOSE = 1e-8
#: Share of an output's mass below which it counts as never used.
_DEAD = 1e-8
#: By how much totals are moved apart, so that the floats' vertex shows a whole basis.
_NUDGE = 1e-4
#: From this many variables on, an interior point with a crossover is faster than the simplex.
_FEW = 500


def float_rays(program: Program, epsilon: float, seconds: float) -> list[Ray]:
    """Solve the program in floats and return the rays that its vertex is made of.

    A vector v of the cone with r components is a sum of r rays: with phi = log_a v, the patterns
    floor(phi - theta), theta running through the fractional parts of phi.
    """
    epsilon = min(max(epsilon, LEAST), MOST)
    try:
        masses = _vertex(program, epsilon, seconds, _NUDGE)
    except SolverFailure:  # PD-I at its least level has no room: a little above it has
        epsilon += 4 * _NUDGE
        masses = _vertex(program, epsilon, seconds, _NUDGE)
    rays: list[tuple[float, Ray]] = []
    starts = np.cumsum([0, *(len(output.row) for output in program.outputs)])
    for k, output in enumerate(program.outputs):
        mass = masses[starts[k] : starts[k + 1]]
        total = float(mass.sum())
        if total <= _DEAD:
            continue
        powers = _powers(program, output, mass, epsilon)
        rays += [(total, Ray(k, f)) for f in _floors(output, powers)]
    rays.sort(key=lambda pair: -pair[0])
    return [ray for _, ray in rays]


def _vertex(program: Program, epsilon: float, seconds: float, nudge: float) -> Floats:
    """Return the masses of all classes at a vertex that HiGHS takes for optimal.

    The variable of a class is its share of its type's total, so that equations read 1 = sum.
    """
    row, source, target = list[int](), list[int](), list[int]()
    cost, ratio = list[float](), list[float]()
    start = 0
    expense = _float_costs(program)
    logs = [math.log(n) if n else 0.0 for n in program.totals]
    for output in program.outputs:
        row += output.row
        cost += [expense[t] * d for t, d in zip(output.row, output.distance, strict=True)]
        size = [
            math.log(c) - logs[t] for t, c in zip(output.row, output.count, strict=True)
        ]  # ln of mass per unit of v
        for u, t in output.arcs:
            source.append(start + u)
            target.append(start + t)
            ratio.append(epsilon + size[u] - size[t])
        start += len(output.row)
    arcs = len(source)
    # mass(u) <= e^ratio mass(t), each row scaled by its larger coefficient.
    logs_of = np.array(ratio)
    left, right = np.exp(-np.maximum(logs_of, 0.0)), -np.exp(np.minimum(logs_of, 0.0))
    order = np.argsort(row, kind="stable")
    lengths = np.bincount(row, minlength=program.size)
    index = np.concatenate([order, np.stack([source, target], axis=1).reshape(-1)])
    entries = np.concatenate([np.ones(start), np.stack([left, right], axis=1).reshape(-1)])
    starts = np.concatenate([[0], np.cumsum(lengths), start + 2 * np.arange(1, arcs + 1)])
    totals = 1.0 + nudge * np.random.default_rng(0).random(program.size)
    lower = np.concatenate([totals, np.full(arcs, -np.inf)])
    upper = np.concatenate([totals, np.zeros(arcs)])
    rows = Rows(starts, index, entries, lower, upper)
    method = "simplex" if start < _FEW else "ipm"
    answer = minimise(np.array(cost), np.zeros(start), rows, seconds, method)
    return np.maximum(answer.values, 0.0)


def _float_costs(program: Program) -> list[float]:
    """Cost per row that changes of a whole type, up to a factor."""
    products = [w * n for w, n in zip(program.prices, program.totals, strict=True)]
    most = max(products)
    return [n / most for n in products] if most else [0.0] * len(products)


def _powers(program: Program, output: Output, mass: Floats, epsilon: float) -> Floats:
    """Exponents of the entries of one output, raised until they lie in the cone."""
    logs = np.array(
        [
            math.log(c) - math.log(program.totals[t])
            for c, t in zip(output.count, output.row, strict=True)
        ]
    )
    with np.errstate(divide="ignore"):
        powers = (np.log(mass) - logs) / epsilon
    if output.arcs:
        source, target = np.array(output.arcs).T
        while True:
            closure = powers.copy()
            np.maximum.at(closure, target, powers[source] - 1.0)
            if np.array_equal(closure, powers):
                break
            powers = closure
    return np.asarray(powers - powers.max())


def _floors(output: Output, powers: Floats) -> list[Pattern]:
    """Return floor(powers - theta) as theta passes the fractional part of every component.

    One component is lowered after the other, so that there are as many patterns as components,
    also where two fractional parts are equal.
    """
    steps = [(u, t) for u, t in output.arcs if powers[u] - powers[t] > 1.0 - _CLOSE]
    place = np.array(components(len(powers), steps))
    parts = powers % 1.0
    parts = np.where(parts > 1.0 - _CLOSE, 0.0, parts)
    floors = np.floor(powers + _CLOSE).astype(np.int64)
    patterns = []
    for c in sorted(set(place.tolist()), key=lambda c: (parts[c], c)):
        if all(floors[u] <= floors[t] + 1 for u, t in output.arcs):  # but for rounding
            patterns.append(normal(floors.tolist()))
        floors[place == c] -= 1
    return patterns
