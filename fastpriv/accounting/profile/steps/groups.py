"""Databases that differ in several records: steps of which each record changes one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fastpriv._core.rounding import raised, roundoff
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Step
from fastpriv.accounting.profile.losses import ContinuousStep, Directed
from fastpriv.accounting.profile.steps.finite import CurveStep, FiniteStep, SampledFinite

# From one database to another, record by record.
#
# Let R(b) be the largest power P(A) of a test with Q(A) <= b. If the pair (P, Q) has the power R1
# and the pair (Q, S) the power R2, then P(A) <= R1(Q(A)) <= R1(R2(S(A))), and some P, Q, S attain
# this (Dong, Roth and Su 2022, theorem 2.14). R1 is linear on intervals whose lengths are masses
# under Q, with slopes e^l1; R2 has values in the same interval [0, 1]. So both partitions of [0, 1]
# are intersected, from the largest losses on. A common interval of length w has the loss l1 + l2
# and the mass w e^l1 under P.


#: Cells of a step whose losses have a density leave out outputs of probability about e^-90.
CUT = 90.0
#: Cells of a step, over the number of records.
_CELLS = 8192
#: Smallest number of cells of a step.
_FEWEST = 256


def losses_of(step: Step, flipped: bool, up: bool, count: int, cut: float = CUT) -> DiscreteLosses:
    """Return discrete losses that bound a step in one order, on at most ``count`` cells.

    Continuous outputs of a probability of about e^-cut are left out on either side.
    From below, the losses are those of a pair that neighbours attain; if none is known, all are 0.
    """
    if isinstance(step, ContinuousStep):
        pair = step if up else step.below
        if pair is not None:
            return Directed(pair, flipped).measure(cut, count, up)
        known = step.witnesses()  # the step is an envelope of pairs; take one of them
        if known:
            return known[len(known) // 2][0][0]
    elif isinstance(step, FiniteStep) and (up or step.free):
        return step.upper if up else step.lower
    elif isinstance(step, SampledFinite) and (up or step.attained):
        return step.measure(flipped, up)
    return nothing_lost()


def nothing_lost() -> DiscreteLosses:
    """Return the losses of equal distributions."""
    return DiscreteLosses(np.zeros(1), np.zeros(1, dtype=np.longdouble), 0.0, 0.0)


def _everything_lost() -> DiscreteLosses:
    """Return the losses of distributions that have no output in common."""
    return DiscreteLosses(np.zeros(0), np.zeros(0, dtype=np.longdouble), 1.0, 0.0)


def chained(first: DiscreteLosses, second: DiscreteLosses) -> DiscreteLosses:
    """Return the losses of P against S, from those of P against Q and of Q against S; from above.

    Examples
    --------
    >>> from fastpriv.accounting.profile.discrete import DiscreteLosses
    >>> one = DiscreteLosses.response(2, 1.0, 0.0)
    >>> float(chained(one, one).top + chained(one, one).shift)
    2.0
    """
    if not (len(first.logs) and len(second.logs)):  # one of them excludes every output
        return _everything_lost()
    falling = [each.losses.astype(np.longdouble)[::-1] + each.shift for each in (first, second)]
    logs = first.logs[::-1] - falling[0]
    count = len(logs) + len(second.logs)
    error = first.error + second.error + first.off + 4.0 * count * FINE + roundoff(8.0)
    # R1 is raised if its intervals are shorter, R2 if its values are larger.
    ends = np.cumsum(np.exp(logs)) * (1.0 - error)
    values = (second.infinite + np.cumsum(np.exp(second.logs[::-1]))) * (1.0 + error)
    values[-1] = max(values[-1], np.longdouble(2.0))
    shown = np.longdouble(second.infinite) * (1.0 + error)  # S excludes these outputs of Q
    cuts = np.unique(np.concatenate([[0.0, shown], ends, values]))
    cuts = cuts[cuts <= ends[-1]]
    width, middle = np.diff(cuts), 0.5 * (cuts[1:] + cuts[:-1])
    i = np.searchsorted(ends, middle)
    j = np.searchsorted(values, middle)
    seen = width > 0.0
    width, middle, i, j = width[seen], middle[seen], i[seen], j[seen]
    masses = np.log(width) - np.log1p(-np.longdouble(error)) + falling[0][i]
    revealed = middle < shown
    infinite = raised(first.infinite + float(np.exp(masses[revealed]).sum()), 8.0 + count)
    losses = (falling[0][i] + falling[1][j])[~revealed][::-1]
    masses = masses[~revealed][::-1]
    if not len(losses):
        return _everything_lost()
    starts = np.flatnonzero(np.diff(losses, prepend=-np.inf) > 0.0)
    most = np.maximum.reduceat(masses, starts)
    sizes = np.diff(np.append(starts, len(losses)))
    total = np.add.reduceat(np.exp(masses - np.repeat(most, sizes)), starts)
    rising, shift = losses[starts], float(losses[0])
    fuzz = error + (32.0 + count + 8.0 * float(np.abs(masses).max())) * FINE
    off = first.off + second.off + roundoff(4.0) * (float(np.abs(rising).max()) + abs(shift))
    return DiscreteLosses(
        (rising - shift).astype(np.float64),
        most + np.log(total),
        min(infinite, 1.0),
        2.0 * fuzz,
        0.0,
        shift,
        off,
    )


class Grouped(CurveStep):
    """A step on databases that differ in up to k records."""

    def __init__(self, step: Step, k: int) -> None:
        super().__init__(("group", step.key, k))
        self.step, self.k = step, k

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grouped) and self.key == other.key and self.step == other.step

    @property
    def levelwise(self) -> bool:
        """Always False: the curve follows from the measures."""
        return False

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Return the losses of k records from above, of one record from below."""
        return _grouped(self.step, self.k if up else 1, flipped, up)


@lru_cache(maxsize=64)
def _grouped(step: Step, k: int, flipped: bool, up: bool) -> DiscreteLosses:
    power = losses_of(step, flipped, up, max(_CELLS // k, _FEWEST))
    result = None
    while True:  # by doubling, because every chain multiplies the error bound
        if k & 1:
            result = power if result is None else chained(result, power)
        k >>= 1
        if not k:
            assert result is not None
            return result
        power = chained(power, power)


class Replaced(CurveStep):
    """A step for a record that is replaced: it is removed, and another one is added.

    If the step is a composition of several, they are replaced one by one. This is sound if all of
    them contain the record of both databases under the same conditions, as in random allocation.
    """

    def __init__(self, step: Step) -> None:
        super().__init__(("replaced", step.key))
        self.step = step
        self.is_composed = isinstance(step, SampledFinite) and step.is_composed

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replaced) and self.step == other.step

    @property
    def levelwise(self) -> bool:
        """Always False: the curve follows from the measures."""
        return False

    def measures(self, flipped: bool, up: bool) -> list[tuple[DiscreteLosses, int]]:
        """Return both records from above; from below, one of them may contribute zero."""
        attained = None if up else self.step.replacement()
        if attained is not None:
            return [(attained, 1)]
        if not isinstance(self.step, SampledFinite):
            known = [[(losses_of(self.step, way, up, _CELLS // 2), 1)] for way in (False, True)]
        else:
            known = [self.step.measures(way, up) for way in (False, True)]
        if not up:
            return known[flipped]
        return [(chained(a, b), k) for (a, k), (b, _) in zip(*known, strict=True)]
