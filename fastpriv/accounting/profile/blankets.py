"""Two databases whose other people are all alike, or covered by one blanket."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.attained import pair_measure
from fastpriv.accounting.profile.excess import Excess, Variable, is_short, multinomial
from fastpriv.accounting.profile.measures import Measure

#: Probabilities of histograms that are left out of a list, and groups that histograms are put into.
_RARE, _GROUPS = 1e-150, 2048

#: Whether bounds from below and above are close enough.
Enough = Callable[[float, float], bool]


@dataclass(frozen=True)
class Triple:
    """Laws a and b of a person's output, and the reference law q of everybody else's.

    The positive part of sum (a - e^t b)/q over n draws from q, and what q never shows.
    """

    a: Floats
    b: Floats
    q: Floats
    only_a: Floats
    only_b: Floats
    relative: float
    lost: float = 0.0

    @property
    def key(self) -> tuple[bytes, ...]:
        """What it is: equal for databases that are as easy to tell apart."""
        parts = (self.a, self.b, self.q, self.only_a, self.only_b, np.float64(self.lost))
        return tuple(part.tobytes() for part in parts)

    def blurred(self, t: float, n: int) -> float:
        """How much less delta may be, for probabilities of q that were taken for zero."""
        return n * self.lost * (1.0 + math.exp(t)) * (1.0 + 1e-12)

    def shown(self, t: float) -> float:
        """What outputs that nobody else has give away."""
        return float(np.maximum(self.only_a - math.exp(t) * self.only_b, 0.0).sum())

    def always(self, n: int) -> float:
        """Limit of delta for large levels, rounded down: all outputs are possible under a only."""
        never = self.b == 0.0
        hidden = float(self.a[never].sum())
        rest = 1.0 - float(self.q[~never].sum()) - self.relative * (not never.all())
        shown = float(self.only_a[self.only_b == 0.0].sum()) + hidden * max(rest, 0.0) ** (n - 1)
        return shown * (1.0 - self.relative)

    def excess(self, t: float, n: int) -> Excess | None:
        """Return what bounds the rest; None where it is 0."""
        values = ((self.a - self.b) - math.expm1(t) * self.b) / self.q
        if not len(values) or not values.max() > 0.0:
            return None
        errors = self.relative * (self.a + math.exp(t) * self.b) / self.q
        return Excess(Variable(values, self.q, errors, self.relative), n)

    def bounds(self, t: float, n: int, enough: Enough) -> tuple[float, float]:
        """Bounds on delta of two databases."""
        low, high = refined(self.excess(t, n), self.shown(t), enough)
        blur = self.blurred(t, n)
        return max(low - blur, 0.0), high + blur

    def listable(self, n: int) -> bool:
        """Whether histograms are few."""
        return self.lost == 0.0 and is_short(len(self.q), n)

    def measure(self, n: int) -> Measure:
        """Losses of the pair of databases, from a list of all histograms; rounded down.

        Histograms with nearly the same ratio are not told apart, which can only lower delta.
        """
        counts, least, most = multinomial(self.q.tobytes(), n, self.relative)
        seen = least > _RARE
        weight = least[seen] / n
        p, q = (weight * (counts[seen] @ (law / self.q)) for law in (self.a, self.b))
        p, q = np.append(p, self.only_a), np.append(q, self.only_b)
        error = float((most[seen] / least[seen] - 1.0).max(initial=0.0))
        error += self.relative + (len(self.q) + 16.0) * ULP
        return pair_measure(*_grouped(p, q), (error, 0.0))


def triple_of(a: Floats, b: Floats, q: Floats, relative: float, lost: float) -> Triple:
    """Merge outputs with the same ratios, and leave out those that say nothing."""
    seen = (q > 0.0) & ((a > 0.0) | (b > 0.0))
    only = (q == 0.0) & (a > 0.0)
    ratios = np.column_stack([a[seen] / q[seen], b[seen] / q[seen]])
    _, where = np.unique(ratios, axis=0, return_inverse=True)
    where = where.reshape(-1)
    sums: list[Floats] = [np.zeros(int(where.max(initial=-1)) + 1) for _ in range(3)]
    for total, part in zip(sums, (a, b, q), strict=True):
        np.add.at(total, where, part[seen])
    order = np.argsort(a[only], kind="stable")
    return Triple(sums[0], sums[1], sums[2], a[only][order], b[only][order], relative, lost)


def _grouped(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Add up chances of outcomes whose ratios are close."""
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    finite = np.isfinite(losses)
    top, bottom = losses[finite].max(initial=-1e-9), losses[finite].min(initial=1e-9)
    cell = np.where(finite, (losses - bottom) / max(top - bottom, 1e-9) * (_GROUPS - 1), 0.0)
    cell = np.where(finite, np.rint(cell), np.where(losses > 0.0, _GROUPS, _GROUPS + 1))
    _, where = np.unique(cell, return_inverse=True)
    total: list[Floats] = [np.zeros(int(where.max()) + 1) for _ in range(2)]
    for sums, law in zip(total, (p, q), strict=True):
        np.add.at(sums, where.reshape(-1), law)
    return total[0], total[1]


def refined(excess: Excess | None, shown: float, enough: Enough) -> tuple[float, float]:
    """Bounds on delta that are good enough, or as good as they get."""
    slack = 1e-14 * shown
    if excess is None:
        return shown - slack, shown + slack
    while True:
        low, high = (end + shown for end in excess.bounds)
        low, high = lowered(low - slack, 2.0), raised(high + slack, 2.0)
        if enough(low, high) or not excess.refine():
            return low, high
