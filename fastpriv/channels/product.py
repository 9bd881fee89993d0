"""Channels that act on every row by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import repeated
from fastpriv._matrices.contraction import product_contraction
from fastpriv._matrices.leakage import Column, Leakages, row_slack
from fastpriv._matrices.pairs import Pairs, all_pairs, joint_laws
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, LawThresholds, draw_rows
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric, distinct
from fastpriv.channels.base import AbstractChannel, support_range
from fastpriv.channels.copies import by_part
from fastpriv.channels.dense import Channel
from fastpriv.channels.witnesses import rows_extreme, rows_ruling_out, rows_step
from fastpriv.errors import InvalidInput
from fastpriv.priors import Distribution, Product
from fastpriv.results import Bracket, IndividualCapacity, Witness
from fastpriv.spaces import Space

__all__ = ["ProductChannel"]

#: Largest matrix that is searched for an adversary.
SEARCHED = 1 << 20


class ProductChannel(AbstractChannel):
    """A mechanism that treats every row by itself, W[x, y] = product of factors[i][x_i, y_i].

    Parameters
    ----------
    factors : sequence of 2-D arrays
        ``factors[i][s, y]`` = p(y_i = y | x_i = s), one per row; equal ones are stored once.

    Examples
    --------
    >>> import fastpriv as fp
    >>> noisy, exact = [[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]
    >>> channel = fp.ProductChannel([noisy, exact])
    >>> fp.dp_level(channel), fp.distortion(channel, fp.Uniform(2, 2))
    (inf, 0.25)
    """

    def __init__(self, factors: Sequence[ArrayLike]) -> None:
        matrices, which = distinct(factors, _load, "factors")
        self._set(RowKernels([RowKernel(matrix) for matrix in matrices], which))

    def _set(self, kernels: RowKernels) -> None:
        self._kernels = kernels
        self.space = Space._trusted(kernels.sizes_in)
        out = Space._trusted(kernels.sizes_out)
        self.output_space = self.space if out == self.space else out

    @classmethod
    def _trusted(cls, kernels: RowKernels) -> ProductChannel:
        self = ProductChannel.__new__(ProductChannel)
        self._set(kernels)
        return self

    def row_kernels(self) -> RowKernels:
        """Return the kernels of the rows."""
        return self._kernels

    def _kron(self, parts: Sequence[Floats]) -> Floats:
        """Kronecker product over rows of a vector or matrix given per distinct kernel."""
        return np.asarray(reduce(np.kron, [parts[k] for k in self._kernels.assignment]))

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""
        self._check_matrix()
        return np.array(self._kron([k.matrix for k in self._kernels.distinct]), order="C")

    def scaled_matrix(self) -> Floats:
        """Return the matrix with every column divided by its largest entry."""
        self._check_matrix()
        return np.array(self._kron([k.near for k in self._kernels.distinct]), order="C")

    def _output(self, prior: Distribution) -> Distribution:
        return prior.through(self._kernels)

    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours: the worst row. Cost O(distinct rows)."""
        levels = [float(kernel.log_ratios.max()) for kernel in self._kernels.distinct]
        return round_up(max(0.0, *levels))

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Yield the laws of one row, per distinct kernel: the other rows' factors sum to one."""
        for kernel in self._kernels.distinct:
            yield from all_pairs(kernel.matrix)

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Least ``low`` and largest ``high`` behind each output, one row after the other."""
        for i, m in enumerate(self.space.sizes):
            # Rows before i are outputs by now; the row in hand comes first, the rest behind it.
            seen = self._kernels[i].matrix > 0.0
            before = math.prod(self.output_space.sizes[:i])
            low, high = (np.moveaxis(v.reshape(before, m, -1), 1, 0) for v in (low, high))
            least, most = support_range(seen, low, high)
            low, high = (np.moveaxis(v, 0, 1).reshape(-1) for v in (least, most))
        return low, high

    def least_support(self) -> int:
        """Product over rows of the least number of values behind an output. O(distinct rows)."""
        counts = [(k.matrix > 0.0).sum(axis=0) for k in self._kernels.distinct]
        least = [int(c[c > 0].min()) for c in counts]
        used = np.bincount(self._kernels.assignment, minlength=len(least)).tolist()
        return math.prod(size**times for size, times in zip(least, used, strict=True))

    def ruling_out(self) -> tuple[int, Ints]:
        """Count outputs that some row's value cannot cause. O(distinct rows)."""
        return rows_ruling_out(self._kernels)

    def step_witness(self, prior: Distribution | None = None) -> Witness:
        """Find what attains the neighbour or the posterior level: one row, the others alike."""
        return rows_step(self._kernels, prior)

    def extreme_witness(self) -> Witness:
        """Find what attains the extreme level: every row by itself."""
        return rows_extreme(self._kernels)

    def leakage_witness(self, prior: Distribution) -> Witness:
        """Find the output that leaks most, in the prior's structure."""
        return Witness(*prior.leading_through(self._kernels))

    @property
    def searched_entries(self) -> int:
        """Entries of the distinct kernels that have no closed forms."""
        kinds = (k for k in self._kernels.distinct if not isinstance(k, Symmetric))
        return sum(math.prod(kernel.shape) for kernel in kinds)

    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y): the worst sum of a row's and the prior's log-ratios."""
        worst = [0.0]
        for kernel, rows in self._kernels.groups():
            ratios = prior._log_ratios(rows)
            # A value that never occurs (-inf) has no posterior to compare, even with an infinity.
            total = kernel.log_ratios[ratios > -math.inf] + ratios[ratios > -math.inf]
            worst.append(float(total.max(initial=0.0)))
        return round_up(max(worst))

    def information(self, prior: Distribution) -> float | Bracket:
        """Return I(X; Y), in the prior's structure."""
        return prior.information_through(self._kernels)

    def law_factors(self) -> list[tuple[Floats, int]]:
        """Return the distinct kernels and the number of rows that use each."""
        counts = np.bincount(self._kernels.assignment, minlength=len(self._kernels.distinct))
        kinds = self._kernels.distinct
        return [(k.matrix, count) for k, count in zip(kinds, counts.tolist(), strict=True)]

    def joined(self, other: AbstractChannel) -> AbstractChannel:
        """Return both outputs row by row, where the other acts row by row as well."""
        if not isinstance(other, ProductChannel):
            return super().joined(other)
        mine, theirs = self._kernels, other._kernels
        codes = mine.assignment * len(theirs.distinct) + theirs.assignment
        kinds, which = np.unique(codes, return_inverse=True)
        pairs = [divmod(code, len(theirs.distinct)) for code in kinds.tolist()]
        laws = [
            RowKernel(joint_laws(mine.distinct[a].matrix, theirs.distinct[b].matrix))
            for a, b in pairs
        ]
        return ProductChannel._trusted(RowKernels(laws, which))

    def capacity(self, gap: float) -> Bracket:
        """Sum of the rows' capacities, each to its share of the gap. Cost O(distinct rows)."""
        kinds, rows = self._kernels.distinct, self._kernels.assignment
        counts = [len(rows)] if len(kinds) == 1 else np.bincount(rows).tolist()
        found = [kernel.capacity(gap / len(rows))[0] for kernel in kinds]
        return repeated(list(zip(counts, found, strict=True)))

    def individual_capacity(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Largest I(X_G; Y) over groups of k rows: searched while the matrix is small.

        Otherwise at least what some rows tell that are searched, and at most the capacity of all.
        """

        def search(channel: ProductChannel) -> IndividualCapacity:
            return channel._searched(k, gap, time_limit)

        small = self.space.size * self.output_space.size <= SEARCHED
        return search(self) if small else by_part(self, SEARCHED, k, search)

    def _searched(self, k: int, gap: float, time_limit: float) -> IndividualCapacity:
        """Search the matrix, whose entries have the rounding errors of n products.

        Entries that are off by a share e move I(p) by at most e sum p W |ln(W/q)|, which Pinsker's
        inequality bounds by e (I + sqrt(2 I)).
        """
        found = super().individual_capacity(k, gap, time_limit)
        error = 8.0 * (self.space.n + 4) * ULP
        slack = error * (found.upper + math.sqrt(2.0 * found.upper) + 4.0 * error)
        lower = max(found.lower - slack, 0.0)
        return IndividualCapacity(lower, found.upper + slack, found.adversary)

    def _row_kinds(self) -> Ints:
        return self._kernels.assignment

    def capacity_prior(self, gap: float) -> Product:
        """Return independent rows, each with the law that is best for its kernel."""
        kinds, rows = self._kernels.distinct, self._kernels.assignment
        return Product._trusted([kernel.capacity(gap / len(rows))[1] for kernel in kinds], rows)

    def correlation(self, prior: Distribution) -> Bracket:
        """Maximal correlation, in the prior's structure."""
        return prior.correlation_through(self._kernels)

    def contraction(self) -> Bracket:
        """Contraction coefficient: closed form for E_d, listed or bounded for other products."""
        return product_contraction(self._kernels)

    def sdpi(self, prior: Distribution) -> Bracket:
        """Strong data-processing constant, in the prior's structure."""
        return prior.sdpi_through(self._kernels)

    def expected_distance(self, prior: Distribution) -> float:
        """Expected number of rows that change. Cost O(distinct rows) and the prior's marginals."""
        if self.output_space != self.space:
            raise InvalidInput("outputs have other row sizes than databases: give metric[x, y]")
        total = []
        for kernel, rows in self._kernels.groups():
            change = kernel.matrix.copy()
            np.fill_diagonal(change, 0.0)
            total.append(float(prior._expected_counts(rows) @ change.sum(axis=1)))
        return math.fsum(total)

    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds, in the prior's structure."""
        self._check_vector()
        return prior.leakages_through(self._kernels)

    def log_output(self, prior: Distribution) -> Floats:
        """Log of the law of the output up to a factor for every y, in the prior's structure."""
        self._check_vector()
        return prior.log_output_through(self._kernels)

    def leakage_levels(self, prior: Distribution) -> tuple[float, float]:
        """Return the largest of each of the leakages, in the prior's structure."""
        return prior.levels_through(self._kernels)

    def column_at(self, y: Ints) -> Floats:
        """Return p(y|x) for every database x."""
        check.fits(self.space.size, "a vector over databases", "use releases row by row only")
        found = np.ones(1)
        for kernel, value in zip(self._kernels, y.tolist(), strict=True):
            found = np.multiply.outer(found, kernel.matrix[:, value]).reshape(-1)
        return found

    def row_columns(self, y: Ints) -> RowKernels | None:
        """Return the column of every row's kernel, equal ones once."""
        chosen, which = np.unique(
            np.stack([self._kernels.assignment, y]), axis=1, return_inverse=True
        )
        kinds = [self._kernels.distinct[k].column(v) for k, v in chosen.T.tolist()]
        return RowKernels(kinds, which.reshape(-1))

    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output, in the prior's structure."""
        return prior.column_through(self._kernels, y).leakage()

    def row_level(self, prior: Distribution, i: int) -> float:
        """Largest leakage of an output about row i: that of the row where rows are independent."""
        if not isinstance(prior, Product):
            return super().row_level(prior, i)
        row = Product._trusted([prior._laws[prior._assignment[i]]], np.zeros(1, dtype=np.int64))
        return row.levels_through(RowKernels([self._kernels[i]], np.zeros(1, dtype=np.int64)))[0]

    def row_leakage_at(self, prior: Distribution, i: int, y: Ints) -> float:
        """Leakage of one output about row i: one pass along the rows for each of its values.

        P(y, x_i = v) is the chance of y with row i shown as it is, times W[v, y_i].
        """
        kernel, (marginal, off) = self._kernels[i], prior._log_marginal(i)
        shown = self._kernels.replaced(i, RowKernel(np.eye(len(marginal))))
        values = np.flatnonzero((marginal + kernel.log_near[:, y[i]]) > -math.inf)
        logs, where = kernel.log_near[values, y[i]], y.copy()
        error = off
        for k, value in enumerate(values):
            where[i] = value
            column = prior.column_through(shown, where)
            logs[k] += column.mass
            error = max(error, off + column.error if column.mass > -math.inf else 0.0)
        best = float((logs - marginal[values]).max(initial=-math.inf))
        mass = float(np.logaddexp.reduce(logs))
        error += 16.0 * ULP * (1.0 + abs(best) + abs(mass))
        return Column(best, mass, error).leakage()

    @property
    def _law_error(self) -> float:
        """Bound the relative error of an output law: every row's kernel, and the prior's sums."""
        return 4.0 * row_slack(self._kernels) + 64.0 * ULP

    def entropy_gain(self, prior: Distribution) -> float:
        """Largest H(X) - H(X | Y = y), in the prior's structure."""
        return prior.gain_through(self._kernels)

    def _add(self, per_kernel: Sequence[float]) -> float:
        """Add a number over rows, given its value for each distinct kernel. Rounded up."""
        counts = np.bincount(self._kernels.assignment, minlength=len(per_kernel))
        return round_up(math.fsum(np.multiply(counts, per_kernel)))

    def extreme_level(self) -> float:
        """Largest ln W[x, y]/W[x', y]: the sum over rows. Cost O(distinct rows)."""
        return self._add([float(k.log_ratios.max()) for k in self._kernels.distinct])

    def maximal_leakage(self) -> float:
        """Log of the sum of column maxima: the sum over rows. Cost O(distinct rows)."""
        return self._add([kernel.maximal_leakage() for kernel in self._kernels.distinct])

    def row_ratio(self, i: int, fixed: bool) -> float:
        """Largest ln W[x, y]/W[x', y] over x, x' that differ in row i, and only there if fixed."""
        if self.space.sizes[i] == 1:
            return 0.0
        return round_up(float(self._kernels[i].log_ratios.max())) if fixed else self.extreme_level()

    def bernoulli_level(self, c: float, i: int | None) -> float:
        """Largest leakage under independent bits, each c to 1 - c: every row by itself."""
        levels = []
        for kernel in self._kernels.distinct if i is None else [self._kernels[i]]:
            one = Channel(kernel.matrix, [2])
            levels.append(one.bernoulli_level(c, 0 if i is not None else None))
        return levels[0] if i is not None else self._add(levels)

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        self._check_vector()
        return self._kron([k.matrix.max(axis=0) for k in self._kernels.distinct])

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
        self._check_vector()
        return self._kron([k.matrix.min(axis=0) for k in self._kernels.distinct])

    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x: the sum over its rows."""
        check.fits(self.space.size, "a vector over databases", "ask for single rows")
        parts = [
            np.array([kernels.entropy(row) for row in k.matrix]) for k in self._kernels.distinct
        ]
        total = np.zeros(1)
        for k in self._kernels.assignment:
            total = np.add.outer(total, parts[k]).reshape(-1)
        return total

    def _check_vector(self) -> None:
        check.fits(self.output_space.size, "a vector over outputs", "ask for single outputs")

    def _sample(self, rows: Codes, source: Source) -> Codes:
        return draw_rows(self._kernels, rows, source)

    def realised_level(self) -> float:
        """Level of the integer thresholds of the worst row; at most epsilon for E_d."""
        return max(kernel.thresholds.level() for kernel in self._kernels.distinct)

    def realised(self) -> tuple[ProductChannel, float]:
        """Return the integer thresholds of the rows as doubles, whose ratios are good to 2^-52.

        Randomised response draws with a ratio rounded down: it is R at its realised level.
        """
        kinds = [
            Symmetric(k.m, k.thresholds.level())
            if isinstance(k, Symmetric)
            else RowKernel(LawThresholds(k.matrix).chances())
            for k in self._kernels.distinct
        ]
        rows = RowKernels(kinds, self._kernels.assignment)
        rounded = sum(len(which) for k, which in rows.groups() if not isinstance(k, Symmetric))
        return ProductChannel._trusted(rows), rounded * 2.0**-50


def _load(factor: ArrayLike, i: int) -> Floats:
    return check.stochastic(factor, f"factor {i}")


def hamming_distance(kernels: RowKernels) -> float:
    """Expected number of rows that R_epsilon moves: h(epsilon), for any row sizes."""
    return math.fsum(
        len(rows) * (kernel.m - 1) * kernel.off
        for kernel, rows in kernels.groups()
        if isinstance(kernel, Symmetric)
    )
