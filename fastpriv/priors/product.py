"""Independent records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import runs, unrolled
from fastpriv._core.rounding import log_down, round_up, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.leakage import Column, log_masses, row_slack, tropical
from fastpriv._structure.rows import RowKernels, Symmetric, distinct, distinct_sizes
from fastpriv.errors import InvalidInput
from fastpriv.priors.base import Distribution, LineDistribution
from fastpriv.priors.unmixing import log_misfit
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.priors.exchangeable import Exchangeable

__all__ = ["Product", "Uniform"]


class Product(LineDistribution):
    """Independent records, which may differ in distribution and in number of values.

    Parameters
    ----------
    marginals : sequence of 1-D arrays
        The distribution of each record. Equal distributions are stored once.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product([[0.5, 0.5], [0.2, 0.3, 0.5]])
    >>> round(prior.epsilon_x(), 6)  # ln(0.5 / 0.2)
    0.916291
    >>> fp.Product.iid([0.9, 0.1], 1_000_000).entropy() / 1_000_000  # doctest: +ELLIPSIS
    0.32508...
    """

    def __init__(self, marginals: Sequence[ArrayLike]) -> None:
        self._set(*distinct(marginals, _load, "marginals"))

    def _set(self, laws: Sequence[Floats], assignment: Ints) -> None:
        self.distinct = tuple(laws)
        self.assignment = assignment
        sizes: list[int] = np.array([len(law) for law in laws])[assignment].tolist()
        self.space = Space.of(tuple(sizes))

    def definition(self) -> dict[str, Any]:
        return {"marginals": list(self.distinct), "rows": runs(self.assignment)}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Product:
        laws = [check.law(law, f"marginal {k}") for k, law in enumerate(given["marginals"])]
        return cls.of(laws, unrolled(given["rows"], len(laws)))

    @classmethod
    def of(cls, laws: Sequence[Floats], assignment: Ints) -> Product:
        self = Product.__new__(Product)
        self._set(laws, assignment)
        return self

    @classmethod
    def iid(cls, p: ArrayLike, n: int) -> Product:
        """Return ``n`` independent records with the same distribution ``p``."""
        n = check.integer(n, "n", 1)
        check.fits(n, "a database", "use fewer records")
        return cls.of([check.law(p, "p")], np.zeros(n, dtype=np.int64))

    @property
    def marginals(self) -> list[Floats]:
        """The distribution of every record (read-only)."""
        shown = [check.shown(law) for law in self.distinct]
        return [shown[k] for k in self.assignment]

    def multiplicities(self) -> Ints:
        """Return how many records have each distinct distribution."""
        return np.bincount(self.assignment, minlength=len(self.distinct))

    def total(self, per_law: Sequence[float]) -> float:
        """Add a quantity over records, given its value for each distinct distribution."""
        return math.fsum(
            c * v for c, v in zip(self.multiplicities().tolist(), per_law, strict=True)
        )

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        joint = np.ones(1)
        for marginal in self.marginals:
            joint = np.multiply.outer(joint, marginal).reshape(-1)
        return joint

    def log_probabilities(self, rows: Ints) -> Floats:
        total = np.zeros(len(rows))
        for k, law in enumerate(self.distinct):
            with np.errstate(divide="ignore"):
                logs = np.log(law)
            total += logs[rows[:, self.assignment == k]].sum(axis=1)
        return total

    def entropy(self) -> float:
        """Return H(X), the sum of the records' entropies. Cost O(distinct distributions)."""
        from fastpriv.kernels import entropy

        return self.total([entropy(law) for law in self.distinct])

    def min_entropy(self) -> float:
        """Return -ln max p(x), the sum over records."""
        return self.total([-math.log(law.max()) for law in self.distinct])

    def log_smallest(self) -> float:
        """Return the log of the smallest positive probability. Rounded down."""
        return -round_up(
            self.total([-log_down(float(law[law > 0].min())) for law in self.distinct])
        )

    def epsilon_tilde(self) -> float:
        """Return the smallest epsilon at which the posterior response exists.

        For independent records it equals epsilon_hat, max_i ln(1/min p_i - m_i + 1). R_e^-1 acts on
        every record by itself, so p_Y >= 0 if each record's distribution is at least 1/(e^e + m_i -
        1).
        """
        return self.epsilon_hat()

    def conditional_lines(self, rows: Ints) -> Floats:
        return np.array([self.distinct[k] for k in np.unique(self.assignment[rows])])

    def alike_records(self) -> list[Ints]:
        return [np.flatnonzero(self.assignment == k) for k in range(len(self.distinct))]

    def marginal_sum(self, rows: Ints) -> Floats:
        counts = np.bincount(self.assignment[rows], minlength=len(self.distinct))
        used = np.flatnonzero(counts)
        return np.asarray(counts[used] @ np.array([self.distinct[k] for k in used]))

    def paired(self, kernels: RowKernels) -> tuple[Ints, Ints, Ints, Ints]:
        """Return distinct pairs of distribution and kernel, their counts, each record's pair."""
        width = len(kernels.distinct)
        keys = self.assignment * width + kernels.assignment
        if len(self.distinct) * width > 4 * len(keys):  # few of all pairs, so do not count them all
            used, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
            return used // width, used % width, counts, place
        counts = np.bincount(keys)
        used = np.flatnonzero(counts)
        place = np.cumsum(counts > 0) - 1
        return used // width, used % width, counts[used], place[keys]

    def through(self, kernels: RowKernels) -> Product:
        """Return the distribution of the output: records stay independent."""
        laws, which, _, assignment = self.paired(kernels)
        pushed = []
        for k, j in zip(laws, which, strict=True):
            kernel, law = kernels.distinct[j], self.distinct[k]
            if isinstance(kernel, Symmetric):
                pushed.append(law + kernel.mixing * flat_excess(law))
            else:
                pushed.append(law @ kernel.matrix)
        return Product.of(pushed, assignment)

    def column(self, kernels: RowKernels, y: Ints) -> Column:
        """Return the column of an output: both logs are sums over records. Cost O(n)."""
        laws, which, _, place = self.paired(kernels)
        best, mass = [0.0], [0.0]
        for pair, (k, j) in enumerate(zip(laws, which, strict=True)):
            law, kernel = self.distinct[k], kernels.distinct[j]
            counts = np.bincount(y[place == pair], minlength=kernel.shape[1])
            used = counts > 0
            allowed = np.where(law > 0, 0.0, -math.inf)
            best += (counts[used] * tropical(allowed, [kernel], np.maximum)[used]).tolist()
            mass += (counts[used] * log_masses(law, [kernel])[used]).tolist()
        total = math.fsum(best), math.fsum(mass)
        slack = max(row_slack([kernel]) for kernel in kernels.distinct)
        error = slack * min(len(y), -4.0 * total[1]) - roundoff(16.0) * sum(total)
        return Column(*total, error)

    def by_type(self) -> Exchangeable | None:
        """Return equal records by counts, with multinomial weights. Cost O(types m)."""
        return self._by_type

    @cached_property
    def _by_type(self) -> Exchangeable | None:
        from fastpriv.priors.exchangeable import multinomial

        used = np.unique(self.assignment)
        return multinomial(self.distinct[used[0]], self.space.n) if len(used) == 1 else None

    def unmixed(self, epsilon: float) -> Product:
        """Return the outputs of the posterior response: R^-1 acts on every record by itself."""
        laws = []
        for law in self.distinct:
            inverse = law + Symmetric(len(law), epsilon).unmixing * flat_excess(law)
            laws.append(np.maximum(inverse, 0.0))
        return Product.of(laws, self.assignment)

    def misfit(self, other: Distribution) -> float:
        """Return the largest |ln p(x)/q(x)|, the sum over records."""
        parts, counts = self._record_misfits(other)
        return math.fsum(counts * parts)

    def record_misfit(self, other: Distribution) -> float:
        """Return the largest |ln p_i(s)/q_i(s)| of any record."""
        return float(self._record_misfits(other)[0].max())

    def _record_misfits(self, other: Distribution) -> tuple[Floats, Ints]:
        """Return the misfits of the distinct records, and how many records have each."""
        assert isinstance(other, Product)
        pairs = np.stack([self.assignment, other.assignment])
        kinds, counts = np.unique(pairs, axis=1, return_counts=True)
        parts = [log_misfit(self.distinct[k], other.distinct[j]) for k, j in kinds.T]
        return np.array(parts), counts

    def part(self, rows: Sequence[int] | Ints) -> Product:
        """Return the distribution of some records, in the given order."""
        used, assignment = np.unique(self.assignment[np.asarray(rows)], return_inverse=True)
        return Product.of([self.distinct[k] for k in used.tolist()], assignment.reshape(-1))

    def given(self, values: Mapping[int, int]) -> Product:
        """Return the distribution given values of some records; these become constants."""
        laws, assignment = list(self.distinct), self.assignment.copy()
        for i, value in values.items():
            law = self.distinct[self.assignment[i]]
            if law[value] <= 0.0:
                raise InvalidInput(
                    f"given values must have a positive probability; record {i} takes the "
                    f"value {value} with probability zero. Give a value that can occur."
                )
            assignment[i] = len(laws)
            laws.append(np.where(np.arange(len(law)) == value, 1.0, 0.0))
        return Product.of(laws, assignment)

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        rows = np.empty((k, self.space.n), dtype=np.int64)
        for j, law in enumerate(self.distinct):
            which = np.flatnonzero(self.assignment == j)
            edges = np.cumsum(law)
            draws = rng.random((k, len(which))) * edges[-1]
            rows[:, which] = np.searchsorted(edges, draws, side="right")
        return rows


class Uniform(Product, form=True):
    """All databases equally likely.

    Parameters
    ----------
    n : int
        Number of records.
    m : int or sequence of int
        Number of values of every record, or a sequence with one number per record.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Uniform(3, 2)
    >>> prior.epsilon_x(), prior.epsilon_tilde(), float(prior.pmf()[0])
    (0.0, 0.0, 0.125)
    """

    def __init__(self, n: int, m: int | Sequence[int]) -> None:
        values, assignment = distinct_sizes(check.row_sizes(n, m))
        self._set([np.full(size, 1.0 / size) for size in values], assignment)

    def min_entropy(self) -> float:
        """Return ln N."""
        return self.total([math.log(len(law)) for law in self.distinct])

    def entropy(self) -> float:
        """Return ln N."""
        return self.min_entropy()


def _load(law: ArrayLike, i: int) -> Floats:
    return check.law(law, f"the distribution of record {i} (for equal ones use Product.iid)")


def flat_excess(law: Floats) -> Floats:
    """Return the sum of the entries minus m times each, from differences."""
    above = law - law.min()
    return np.asarray(above.sum() - len(law) * above)
