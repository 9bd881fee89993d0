"""Records that form a Markov chain, and such a chain after a channel on each record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import runs, unrolled
from fastpriv._core.rounding import lowered, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import Wide, wide
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.leakage import Column
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.errors import InvalidInput, TooLarge, described
from fastpriv.priors.base import Distribution, LineDistribution
from fastpriv.priors.exchangeable import inverse_matrix
from fastpriv.priors.unmixing import chain_bound, tilde_bound
from fastpriv.results import Bracket
from fastpriv.spaces import Space

__all__ = ["HiddenMarkov", "Markov"]

#: Longest vector in which eps_tilde is searched.
_MAX_LISTED = 1 << 22
#: The same for the first and the last records of a longer chain.
_MAX_PART = 1 << 12
#: From this probability on, a product of two, times 2^500, keeps all its digits.
_RARE = 1e-220
#: Largest joint distribution of past outputs and one record in the bounds on information.
_MAX_WINDOW = 1 << 20


#: Probabilities with a smaller logarithm are added up as logarithms. Above it, three such factors
#: and their sum do not underflow.
_LOG_SMALL = math.log(1e-99)


class Markov(LineDistribution):
    """Records that form a homogeneous Markov chain.

    Parameters
    ----------
    initial : 1-D array
        Distribution of the first record.
    transition : 2-D array
        ``transition[a, b]`` = P(next record = b | this record = a).
    n : int
        Number of records.

    Examples
    --------
    >>> import fastpriv as fp
    >>> chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 1_000_000)
    >>> round(chain.epsilon_x(), 6)  # ln(0.9^2 / 0.1^2)
    4.394449
    """

    def __init__(self, initial: ArrayLike, transition: ArrayLike, n: int) -> None:
        self.initial = check.law(initial, "initial")
        self.transition = check.stochastic(transition, "transition")
        m = len(self.initial)
        if self.transition.shape != (m, m):
            raise InvalidInput(
                f"transition must be {m} x {m} to match initial; got {self.transition.shape}."
            )
        self.space = Space.hamming(n, m)

    def definition(self) -> dict[str, Any]:
        return {"initial": self.initial, "transition": self.transition, "n": self.space.n}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Markov:
        return cls(given["initial"], given["transition"], given["n"])

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        m = len(self.initial)
        joint = self.initial
        for _ in range(self.space.n - 1):
            joint = (joint.reshape(-1, m, 1) * self.transition).reshape(-1)
        return joint.copy()

    def wide(self) -> Wide:
        """Return the probability of every database without underflow, up to n rounding errors."""
        m, steps = len(self.initial), wide(self.transition)
        joint = wide(self.initial)
        for _ in range(self.space.n - 1):
            joint = (joint.reshape(-1, m, 1) * steps).reshape(-1)
        return joint

    def log_probabilities(self, rows: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            first, steps = np.log(self.initial), np.log(self.transition)
        return np.asarray(first[rows[:, 0]] + steps[rows[:, :-1], rows[:, 1:]].sum(axis=1))

    def _marginal_sum(self, count: int) -> Floats:
        """Return the sum of the marginals of the first ``count`` records."""
        from fastpriv.kernels import markov_counts

        return markov_counts(self.initial, self.transition, np.arange(count))

    def entropy(self) -> float:
        """Return H(X) = H(initial) + sum over steps of the expected row entropy. Cost O(n m^2)."""
        from fastpriv.kernels import entropy

        rows = np.array([entropy(row) for row in self.transition])
        return float(entropy(self.initial) + self._marginal_sum(self.space.n - 1) @ rows)

    def min_entropy(self) -> float:
        """Return -ln of the largest probability of a path, by Viterbi. Cost O(n m^2)."""
        from fastpriv.kernels import markov_best_path

        with np.errstate(divide="ignore"):
            logs = np.log(self.initial), np.log(self.transition)
        return -markov_best_path(*logs, self.space.n)

    def log_smallest(self) -> float:
        """Return the log of the smallest positive path probability, by Viterbi. Rounded down."""
        from fastpriv.kernels import markov_best_path

        start, step = (
            np.where(p > 0.0, -np.log(np.where(p > 0.0, p, 1.0)), -math.inf)
            for p in (self.initial, self.transition)
        )
        least = markov_best_path(start, step, self.space.n)
        return lowered(-least, self.space.n + 4.0)

    def conditional_lines(self, rows: Ints) -> Floats:
        """Return a record's distribution given both adjacent records, for all their values."""
        first, T, n, m = self.initial, self.transition, self.space.n, len(self.initial)
        if n == 1:
            return first[None, :]
        if first.min() == 0 or T.min() == 0:
            # Some database is impossible. Single changes link all databases, so some line has a
            # positive weight beside a zero weight.
            return np.eye(m)
        # The scale of a line is arbitrary, and products of small probabilities underflow.
        parts = self._patterns(rows, first, T * 2.0**500, T)
        return np.concatenate([part.reshape(-1, m) for part in parts])

    def _patterns(self, rows: Ints, first: Any, before: Any, after: Any) -> list[Any]:
        """Return p(record | record before) times p(record after | record), for all values."""
        m, n, parts = len(self.initial), self.space.n, []
        if rows[0] == 0:
            parts.append(before.T * first)
        if rows[-1] == n - 1:
            parts.append(after)
        if np.any((rows > 0) & (rows < n - 1)):
            parts.append(before.reshape(m, 1, m) * after.T.reshape(1, m, m))
        return parts

    def _log_lines(self, rows: Ints) -> Floats | None:
        """Return the lines as logarithms if a product of two probabilities underflows."""
        least = min(self.initial.min(), self.transition.min())
        if self.space.n == 1 or not 0.0 < least < _RARE:
            return None
        T = wide(self.transition)
        parts = self._patterns(rows, wide(self.initial), T, T)
        return np.concatenate([part.logs().reshape(-1, len(self.initial)) for part in parts])

    @cached_property
    def rounding_error(self) -> float:
        """Bound the error from rounded products and from rows that do not sum to one.

        The ratio of two databases may compare rows b and b' of the transition matrix. Normalising
        both rows changes the ratio by at most the quotient of their sums.
        """
        chain = np.concatenate([self.initial, self.transition.reshape(-1)])
        if self.space.n == 1 or np.ptp(chain) == 0.0:
            return 0.0
        off = [math.fsum([*row, -1.0]) for row in self.transition.tolist()]
        return roundoff(8.0) + (max(off) - min(off)) * (1.0 + 2.0**-20)

    def marginal_sum(self, rows: Ints) -> Floats:
        from fastpriv.kernels import markov_counts

        return markov_counts(self.initial, self.transition, rows)

    def through(self, kernels: RowKernels) -> HiddenMarkov:
        """Return the distribution of the output, a hidden Markov chain."""
        return HiddenMarkov(self, kernels)

    @cached_property
    def log_chain(self) -> tuple[Floats, Floats]:
        """Return logs of the distribution of the first record and of the steps [after, before]."""
        chain = self.initial, self.transition
        with np.errstate(divide="ignore"):
            start, steps = (np.log(p / p.sum(axis=-1, keepdims=True)) for p in chain)
        return start, np.ascontiguousarray(steps.T)

    def epsilon_tilde(self) -> float | Bracket:
        """Return the smallest epsilon at which the posterior response exists.

        A bracket for long chains. The lower bound is the threshold of the first and last records
        alone, because the posterior response restricted to some records is their posterior
        response. The upper bound comes from a cone that contains chains of any length, or from a
        closed form.
        """
        return self._epsilon_tilde

    @property
    def is_long(self) -> bool:
        """Whether the chain is too long for a list of its databases."""
        return self.space.size > _MAX_LISTED

    @cached_property
    def _epsilon_tilde(self) -> float | Bracket:
        if not self.is_long:
            return super().epsilon_tilde()
        spread = self.epsilon_x()
        if spread == math.inf or spread == 0.0:
            return spread
        m, n = len(self.initial), self.space.n
        window = min(n, max(1, int(math.log(_MAX_PART) / math.log(m))))
        starts = self.initial, self.marginal(n - window)
        parts = [
            Markov(start / start.sum(), self.transition, window).as_dense("a part").epsilon_tilde()
            for start in starts
        ]
        # The search uses rounded distributions, so its last digits are not a bound.
        lower = max(self.epsilon_hat() * (1.0 - 1e-9), max(parts) * (1.0 - 1e-9) - 1e-9, 0.0)
        high = tilde_bound(self.space.sizes, spread)
        return Bracket(lower, chain_bound(self.initial, self.transition, lower, high))

    def column(self, kernels: RowKernels, y: Ints) -> Column:
        """Return the column: the mean by forward recursion, the maximum by Viterbi. O(n m^2)."""
        tables = [[k.relative, k.loss, k.log_relative, k.log_relative] for k in kernels.distinct]
        return _along(self, tables, kernels.assignment, y)

    def unmixed(self, epsilon: float) -> Distribution:
        """Return the outputs of the posterior response, as a chain if it is too long to list."""
        return UnmixedMarkov(self, epsilon) if self.is_long else super().unmixed(epsilon)

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        from fastpriv.kernels import markov_paths

        edges = np.cumsum(self.initial), np.cumsum(self.transition, axis=1)
        return markov_paths(*edges, rng.random((k, self.space.n)))


def _along(chain: Markov, tables: list[list[Floats]], assignment: Ints, y: Ints) -> Column:
    """Run the forward and the Viterbi recursion along a chain.

    For each kind of record there are four tables [state, y]: means of near and of loss, the log of
    the mean, and the largest log.
    """
    from fastpriv.kernels import chain_log_best, chain_log_mass, chain_log_sum

    initial, transition = chain.initial, chain.transition
    widest = max(table[0].shape[1] for table in tables)
    near, loss, logs, tops = np.zeros((4, len(tables), widest, len(initial)))
    for kind, parts in enumerate(tables):
        for out, part in zip((near, loss, logs, tops), parts, strict=True):
            out[kind, : part.shape[1]] = part.T
    best = chain_log_best(initial, transition, tops, assignment, y)
    # Every record multiplies the forward weights by a few positive numbers.
    slack = roundoff(len(y) * (4 * len(initial) + 16))
    start, steps = chain.log_chain
    rare = any(np.any((part > -math.inf) & (part < _LOG_SMALL)) for part in (steps, logs))
    mass = math.nan if rare else chain_log_mass(initial, transition, near, loss, assignment, y)
    if math.isnan(mass):  # terms may be lost to underflow
        mass, size = chain_log_sum(start, steps, logs, assignment, y)
        slack += roundoff(8.0 * len(y)) * size  # a few additions of logarithms for every record
    else:
        slack *= min(1.0, -4.0 * mass)
    return Column(best, mass, slack - roundoff(16.0) * (best + mass))


def chain_information(chain: Markov, kernels: RowKernels) -> float | Bracket:
    """Return I(X; Y) of a chain across a channel that acts record by record, in nats.

    Exact if the distribution of the outputs fits, otherwise a certified bracket.
    """
    first, n, m = chain.initial, chain.space.n, len(chain.initial)
    widest = max(max(kernel.shape) for kernel in kernels.distinct)
    # I = sum_i I(X_i; Y_i | Y_1..i-1). With a window of the k last outputs instead of all, a term
    # can only grow. Given the window's first record as well, it can only shrink. The smaller term
    # is linear in the distribution of that record and the larger term is concave. So by Jensen's
    # inequality the sum over all windows needs only the mean distribution.
    # k is the largest with widest^(k-1) contexts times m values in bounds, at most n.
    window = min(n, 1 + int(math.log(_MAX_WINDOW / m) / math.log(max(widest, 2))))
    terms = _window_terms(chain, first[None, :], kernels, window)
    if window == n:
        return math.fsum(terms)
    if len(kernels.distinct) > 1:
        raise TooLarge(
            f"mutual information of {n} rows of a chain through different row kernels has no "
            "bounded window; use one kernel for all rows or a shorter chain."
        )
    rest = n - window
    starts = chain.marginal_sum(np.arange(1, rest + 1))
    upper = rest * _window_terms(chain, starts[None, :] / rest, kernels, window)[-1]
    lower = _window_terms(chain, np.diag(starts), kernels, window)[-1]
    head = math.fsum(terms)
    slack = 1e-12 * (head + upper)
    most = min(head + upper + slack, chain.entropy())
    return Bracket(min(max(0.0, head + lower - slack), most), most)


def _window_terms(chain: Markov, start: Floats, kernels: RowKernels, window: int) -> list[float]:
    """Return I(X_i; Y_i | Y_<i, C) for i < window, ``start[c, s]`` = P(C = c, X_0 = s)."""
    joint, terms = start, []
    for i in range(window):
        terms.append(kernels[i].information(joint))
        if i + 1 < window:
            emitted = joint[:, None, :] * kernels[i].matrix.T
            joint = (emitted @ chain.transition).reshape(-1, joint.shape[1])
    return terms


class HiddenMarkov(Distribution):
    """A Markov chain observed through a channel on each record, such as randomised response.

    Probabilities come from the forward recursion. Quantities without a closed form use the dense
    vector if it fits. A channel's ``output`` makes it.
    """

    def __init__(self, chain: Markov, kernels: RowKernels) -> None:
        if not isinstance(chain, Markov) or not isinstance(kernels, RowKernels):
            raise InvalidInput(
                "chain must be a Markov prior and kernels the channels of its rows; got "
                f"{described(chain)} and {described(kernels)}. Use channel.output(chain)."
            )
        if kernels.sizes_in != chain.space.sizes:
            raise InvalidInput(
                f"kernels must have a row for each value of {chain!r}. Use channel.output(chain)."
            )
        self.chain, self.kernels = chain, kernels
        self.space = Space(kernels.sizes_out)

    def definition(self) -> dict[str, Any]:
        matrices = [kernel.matrix for kernel in self.kernels.distinct]
        return {"chain": self.chain, "emissions": matrices, "rows": runs(self.kernels.assignment)}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> HiddenMarkov:
        chain = Markov.from_dict(given["chain"])
        kernels = [RowKernel(check.stochastic(W, "emissions")) for W in given["emissions"]]
        rows = RowKernels(kernels, unrolled(given["rows"], len(kernels)))
        if rows.sizes_in != chain.space.sizes:
            raise InvalidInput("emissions must have a row for each value of the chain.")
        return cls(chain, rows)

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers), by the forward recursion."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        joint = self.chain.initial[None, :]
        for i in range(self.space.n):
            emitted = (joint[:, None, :] * self.kernels[i].matrix.T).reshape(-1, joint.shape[1])
            last = i + 1 == self.space.n
            joint = emitted.sum(axis=1) if last else emitted @ self.chain.transition
        return joint

    def log_probabilities(self, rows: Ints) -> Floats:
        from fastpriv.kernels import hidden_markov_log_prob

        emissions = np.zeros(
            (len(self.kernels.distinct), max(self.space.sizes), self.chain.space.sizes[0])
        )
        for table, kernel in zip(emissions, self.kernels.distinct, strict=True):
            table[: kernel.shape[1]] = kernel.matrix.T
        chain = self.chain
        return hidden_markov_log_prob(
            chain.initial, chain.transition, emissions, self.kernels.assignment, rows
        )

    def logs_if_rare(self) -> Floats | None:
        """Return the log-probability of every database; None if none can underflow."""
        least = self.chain.log_smallest()
        for kernel, rows in self.kernels.groups():
            seen = kernel.matrix[kernel.matrix > 0.0]
            least += len(rows) * math.log(seen.min())
        return None if least > math.log(TINY) else self.all_log_probabilities()

    def entropy(self) -> float | Bracket:
        """Return H(Y) = I(X; Y) + H(Y | X), a bracket if I(X; Y) is a bracket."""
        from fastpriv.kernels import entropy

        noise = math.fsum(
            float(self.chain.marginal_sum(rows) @ [entropy(row) for row in kernel.matrix])
            for kernel, rows in self.kernels.groups()
        )
        information = chain_information(self.chain, self.kernels)
        if isinstance(information, Bracket):
            return Bracket(information.lower + noise, information.upper + noise)
        return information + noise

    def log_smallest(self) -> float:
        return self.as_dense("the least probability").log_smallest()

    def marginal_sum(self, rows: Ints) -> Floats:
        total = np.zeros(self.space.sizes[rows[0]])
        for kernel, group in self.kernels.groups():
            shared = np.intersect1d(rows, group)
            if len(shared):
                total += self.chain.marginal_sum(shared) @ kernel.matrix
        return total

    def column(self, kernels: RowKernels, y: Ints) -> Column:
        """Return the column, with the kernels of chain and channel joined. Cost O(n m^2)."""
        width = len(kernels.distinct)
        pairs, assignment = np.unique(
            self.kernels.assignment * width + kernels.assignment, return_inverse=True
        )
        tables = []
        for hidden, kernel in (
            (self.kernels.distinct[p // width], kernels.distinct[p % width]) for p in pairs
        ):
            seen = np.where(hidden.matrix[:, :, None] > 0, kernel.log_relative, -math.inf)
            means = [hidden.matrix @ kernel.relative, hidden.matrix @ kernel.loss]
            with np.errstate(divide="ignore"):
                terms = np.log(hidden.matrix)[:, :, None] + kernel.log_relative
            tables.append([*means, np.logaddexp.reduce(terms, axis=1), seen.max(axis=1)])
        return _along(self.chain, tables, assignment.reshape(-1), y)

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        from fastpriv._sampling.source import source
        from fastpriv._structure.rows import draw_rows

        return draw_rows(self.kernels, self.chain.draw(k, rng), source(rng))


class UnmixedMarkov(HiddenMarkov, form=True):
    """R^-1 p of a Markov chain p: outputs of the posterior response, for chains too long to list.

    Probabilities come from the forward recursion with R^-1, whose entries have both signs. From the
    upper bound of ``epsilon_tilde`` on, all probabilities are positive.
    """

    def __init__(self, chain: Markov, epsilon: float) -> None:
        inverse = RowKernel(inverse_matrix(Symmetric(len(chain.initial), epsilon)))
        super().__init__(chain, RowKernels([inverse], np.zeros(chain.space.n, dtype=np.int64)))

    def entropy(self) -> float | Bracket:
        """Return H(Y), through the dense form."""
        return self.as_dense("the entropy of the outputs of E_i").entropy()

    def logs_if_rare(self) -> Floats | None:
        return self.all_log_probabilities()

    def through(self, kernels: RowKernels) -> Distribution:
        """Return the distribution after R_epsilon: the chain."""
        return self.chain

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        return self.as_dense("a sample of the outputs of E_i").draw(k, rng)
