"""Fixed mechanisms on one database: the worst pair of neighbours, the same in every release.

Where later mechanisms are chosen after earlier outputs, the pair that is worst may change with what
came out, and the envelope of all pairs is composed. Where the mechanisms are fixed beforehand, two
neighbouring databases stay the same two in all releases: the composed curve is the largest, over
pairs and both orders, of the composition of each pair's own laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.attained import ALIKE, _sites, digits, pair_measure
from fastpriv.accounting.profile.curve import Curve
from fastpriv.accounting.profile.measures import Measure
from fastpriv.errors import TooLarge
from fastpriv.spaces import Space

#: Most pairs of neighbours, in all spaces together, that are composed one by one.
_PAIRS = 1 << 12
#: Losses that are joined are moved by at most this share of the largest.
_JOINED = 2.0**-38

#: What one pair of neighbours attains, from below and from above, and how often.
Fixed = list[tuple[Measure, Measure, int]]


def every_pair(parts: Mapping[Atom, int]) -> list[Fixed]:
    """Return what each pair of neighbours attains in all releases together, in each order."""
    return [first for first, _ in ordered_pairs(parts)]


def ordered_pairs(parts: Mapping[Atom, int]) -> list[tuple[Fixed, Fixed]]:
    """Return what each pair of neighbours attains in one order, and in the other."""
    free: Fixed = []
    spaces: dict[Space, list[tuple[Atom, int]]] = {}
    for atom, count in parts.items():
        if atom.free:
            free.append((atom.lower, atom.upper, count))
        elif atom.source is not None:
            spaces.setdefault(atom.source.channel.space, []).append((atom, count))
    result = []
    for kinds in spaces.values():
        if all(atom.is_response for atom, _ in kinds):  # the row with the fewest values is worst
            free += [(atom.lower, atom.upper, count) for atom, count in kinds]
        else:
            result.append(list(_pairs(kinds).values()))
    if math.prod(map(len, result)) > _PAIRS:
        raise _too_many()

    def together(chosen: Sequence[tuple[Fixed, Fixed]], order: int) -> Fixed:
        return [*free, *(one for each in chosen for one in each[order])]

    # Neighbours of different spaces are chosen freely.
    return [(together(chosen, 0), together(chosen, 1)) for chosen in product(*result)]


def _too_many() -> TooLarge:
    return TooLarge(
        f"there are more than {_PAIRS:,} pairs of neighbours to compose one by one; ask for the "
        "guarantee that survives adaptive choice, adaptive=True"
    )


def _pairs(kinds: list[tuple[Atom, int]]) -> dict[tuple[bytes, ...], tuple[Fixed, Fixed]]:
    """Return the distinct pairs of neighbours of one space, in each order and in the other."""
    sources = [atom.source for atom, _ in kinds if atom.source is not None]
    sites = _sites(sources)
    if sites is None:
        raise _too_many()
    result: dict[tuple[bytes, ...], tuple[Fixed, Fixed]] = {}
    for groups, errors in sites:
        for j in range(len(groups[0][1])):
            orders: list[Fixed] = [[], []]
            for (laws, pairs), error, (_, count) in zip(groups, errors, kinds, strict=True):
                for fixed, (x, other) in zip(orders, (pairs[j], pairs[j][::-1]), strict=True):
                    low = pair_measure(laws[x], laws[other], error)
                    fixed.append((low, _raised(low, laws[x], laws[other], error[1]), count))
            for first, second in (orders, orders[::-1]):
                key = tuple(digits(low) for fixed in (first, second) for low, _, _ in fixed)
                one, other = result.get(key, (first, second))
                result[key] = _joined(one, first), _joined(other, second)
            if len(result) > _PAIRS:
                raise _too_many()
    return result


def _joined(kept: Fixed, other: Fixed) -> Fixed:
    """One pair for two with the same digits: it bounds both from above."""
    return [
        (low, up if _equal(up, again) else _above(up), count)
        for (low, up, count), (_, again, _) in zip(kept, other, strict=True)
    ]


def _equal(first: Measure, second: Measure) -> bool:
    """Whether both are the same, float for float."""
    names = ("losses", "logs", "infinite", "shift")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def _above(measure: Measure) -> Measure:
    """Bound all measures with the same digits from above."""
    return replace(
        measure,
        infinite=min(measure.infinite * (1.0 + 2.0 * ALIKE), 1.0),
        error=measure.error + 2.0 * ALIKE,
        off=measure.off + 2.0 * ALIKE * (abs(measure.shift) + measure.top),
    )


def _raised(low: Measure, first: np.ndarray, second: np.ndarray, below: float) -> Measure:
    """The same measure, with what rounding may have taken away given back.

    Second chances that may be those of underflow, ``below``, count as none.
    """
    size = abs(low.shift) + low.top
    lost = math.fsum(first[second <= 2.0**53 * below].tolist()) + 8.0 * len(first) * below
    lost *= 1.0 + 2.0 * low.error + 8.0 * ULP
    return replace(low, infinite=min(lost, 1.0), off=low.off + _JOINED * size)


class Largest:
    """The largest of the curves of some pairs."""

    def __init__(self, candidates: list[Fixed]) -> None:
        self._above = [Curve([(up, k) for _, up, k in each], True) for each in candidates]
        self._below = [Curve([(low, k) for low, _, k in each], False) for each in candidates]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return both ends of delta."""
        bounds = [curve.at_most(epsilon) for curve in self._above]
        low = high = 0.0
        for j in np.argsort(bounds)[::-1].tolist():
            if bounds[j] < high:
                break
            high = max(high, self._above[j].delta(epsilon))
            low = max(low, self._below[j].delta(epsilon))
        return low, high

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return both ends of epsilon."""
        low = high = 0.0
        guess = 0.5 * max(curve.top for curve in self._above)
        bounds = [curve.at_most(guess) for curve in self._above]
        for j in np.argsort(bounds)[::-1].tolist():
            curve = self._above[j]
            known = 0.0 < high < math.inf and curve.infinite < delta
            if known and curve.at_most(high) <= delta:
                continue
            high = max(high, curve.epsilon(delta))
            low = max(low, self._below[j].epsilon(delta))
        return low, high
