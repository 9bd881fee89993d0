"""When a mechanism is a post-processing of another: Blackwell's order, Le Cam's deficiency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, raised, sum_up
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, ProductChannel
from fastpriv.channels.rowwise import row_kernels
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.arguments import as_channel
from fastpriv.results import Bracket

__all__ = ["Refinement", "refines"]

#: Largest deficiency, in total variation, that counts as the rounding of a post-processing.
_ROUNDED = 1e-9
#: Most coefficients of the linear program.
_LARGEST = 1 << 23


@dataclass(frozen=True, eq=False, repr=False)
class Refinement:
    """Whether a mechanism b can be had from a mechanism a by processing a's outputs.

    It is truthy where b is a post-processing of a up to rounding: every measure in this library
    that obeys data processing then ranks a at least as leaky as b, under every prior.

    Attributes
    ----------
    deficiency : Bracket
        Least d such that some processing of a is within total variation d of b for every
        database (Le Cam 1964). Zero exactly where b is a post-processing of a.
    processing : channel or None
        A channel from outputs of a to outputs of b that reaches the upper end.
    prior, utility : ndarray or None
        Where the order fails: a law of the databases and the utility ``utility[x, z]`` in [0, 1]
        of deciding z, for which the outputs of b are worth more than those of a, by about the
        lower end (Blackwell 1953). None for products, where one row shows it.

    Examples
    --------
    >>> import fastpriv as fp
    >>> strong, weak = fp.HammingChannel(3, 2, 1.0), fp.HammingChannel(3, 2, 0.5)
    >>> bool(fp.refines(strong, weak)), bool(fp.refines(weak, strong))
    (True, False)
    """

    deficiency: Bracket
    processing: AbstractChannel | None = None
    prior: Floats | None = None
    utility: Floats | None = None

    def __bool__(self) -> bool:
        return self.deficiency.upper <= _ROUNDED

    def __repr__(self) -> str:
        return f"Refinement({bool(self)}, deficiency={self.deficiency!r})"


def refines(
    a: AbstractChannel | ArrayLike, b: AbstractChannel | ArrayLike, *, time_limit: float = 60.0
) -> Refinement:
    """Say whether mechanism b is a post-processing of mechanism a, with a proof either way.

    b is a post-processing of a where B = A R for a channel R from outputs of a to outputs of b
    (Blackwell 1953). The distance from it is Le Cam's deficiency, the least over R of the largest
    total variation between rows of A R and B. It is a linear program; its dual is a decision
    problem in which b is more useful than a.

    Parameters
    ----------
    a, b : channels or 2-D arrays
        The mechanisms, on equally many databases. A plain matrix takes the other one's space.
    time_limit : float
        Seconds for each linear program.

    Returns
    -------
    Refinement
        Truthy where the deficiency is at most 1e-9. Its bracket is proved: the upper end by the
        processing that is returned, the lower end by the decision problem.

    Notes
    -----
    Channels that act row by row are compared row by row: a product refines a product exactly
    where each row does. Otherwise a program with N K_a K_b coefficients is solved by HiGHS.

    Raises
    ------
    TooLarge
        When the program has more than 2^23 coefficients.

    Examples
    --------
    >>> import fastpriv as fp
    >>> bool(fp.refines([[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]))
    True
    >>> fp.refines([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]])
    Refinement(False, deficiency=Bracket(0.4999999999, 0.5000000001))
    """
    time_limit = check.real(time_limit, "time_limit", least=0.0)
    first = as_channel(a, b.space if isinstance(b, AbstractChannel) else None)
    second = as_channel(b, first.space)
    if first.space != second.space:
        raise InvalidInput(
            f"both mechanisms must be about the same databases, got {first.space!r} and "
            f"{second.space!r}"
        )
    rows = row_kernels(first), row_kernels(second)
    if rows[0] is None or rows[1] is None or first.space.n == 1:
        whole = _compared(first.matrix(), second.matrix(), time_limit)
        return Refinement(whole.deficiency, Channel(whole.processing), whole.prior, whole.utility)
    return _row_by_row(rows[0], rows[1], time_limit)


def _row_by_row(first: RowKernels, second: RowKernels, time_limit: float) -> Refinement:
    """Compare products through their rows.

    Processing every row by itself processes the product. Conversely, hold all rows but one fixed
    in a processing of the product and look at that row's output alone: it is a processing of the
    row, fed with noise of a known law. So the deficiency is at least the largest of the rows' and
    at most their sum.
    """
    pairs = np.stack([first.assignment, second.assignment], axis=1)
    kinds, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    parts = [
        _compared(first.distinct[s].matrix, second.distinct[t].matrix, time_limit)
        for s, t in kinds.tolist()
    ]
    lower = max(part.deficiency.lower for part in parts)
    uppers = [part.deficiency.upper for part in parts]
    total = sum_up([raised(u * count, 2.0) for u, count in zip(uppers, counts, strict=True)])
    kernels = RowKernels(
        [RowKernel(np.array(part.processing)) for part in parts], which.reshape(-1)
    )
    processing = ProductChannel._trusted(kernels)
    return Refinement(Bracket(lower, max(lower, min(total, 1.0))), processing)


class _Comparison(NamedTuple):
    deficiency: Bracket
    processing: Floats
    prior: Floats | None
    utility: Floats | None


def _compared(A: Floats, B: Floats, seconds: float) -> _Comparison:
    """Solve the program of deficiency for two matrices, repaired and certified on both sides."""
    A, B = np.asarray(A), np.asarray(B)
    (n, inner), outer = A.shape, B.shape[1]
    if n * inner * outer > _LARGEST:
        raise TooLarge.entries(
            "the linear program of the comparison",
            n * inner * outer,
            "compare channels that act row by row, or with fewer outputs",
        )
    values, prices = _program(A, B, seconds)
    R = np.maximum(values, 0.0)
    totals = R.sum(axis=1, keepdims=True)
    R = np.where(totals > 0.0, R / np.where(totals > 0.0, totals, 1.0), 1.0 / outer)
    utility, weights = _decision(prices)
    upper = _variation(A, B, R)
    lower = min(max(_advantage(A, B, prices), 0.0), upper)
    if lower == 0.0:
        return _Comparison(Bracket(0.0, upper), R, None, None)
    return _Comparison(Bracket(lower, upper), R, weights, utility)


def _program(A: Floats, B: Floats, seconds: float) -> tuple[Floats, Floats]:
    """Minimise t over R >= 0 with unit row sums, s >= B - A R, s >= 0, t >= sum_z s[x, z].

    Returns R and the multipliers of the rows s + A R >= B.
    """
    (n, inner), outer = A.shape, B.shape[1]
    size = inner * outer
    cost = np.zeros(size + n * outer + 1)
    cost[-1] = 1.0
    x, z = np.indices((n, outer)).reshape(2, -1)
    missing = size + np.arange(n * outer)
    # For every (x, z): entries A[x, y] at R[y, z], and 1 at s[x, z].
    first = np.concatenate([np.arange(inner) * outer + z[:, None], missing[:, None]], axis=1)
    entries = np.concatenate([A[x], np.ones((n * outer, 1))], axis=1)
    sums = np.arange(size).reshape(inner, outer)
    last = np.concatenate([missing.reshape(n, outer), np.full((n, 1), size + n * outer)], axis=1)
    worst = np.concatenate([-np.ones((n, outer)), np.ones((n, 1))], axis=1)
    lengths = np.repeat([inner + 1, outer, outer + 1], [n * outer, inner, n])
    rows = Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([first.reshape(-1), sums.reshape(-1), last.reshape(-1)]),
        np.concatenate([entries.reshape(-1), np.ones(size), worst.reshape(-1)]),
        np.concatenate([B.reshape(-1), np.ones(inner), np.zeros(n)]),
        np.concatenate([np.full(n * outer, math.inf), np.ones(inner), np.full(n, math.inf)]),
    )
    answer = minimise(cost, np.zeros(len(cost)), rows, seconds)
    return answer.values[:size].reshape(inner, outer), answer.duals[: n * outer].reshape(n, outer)


def _decision(prices: Floats) -> tuple[Floats, Floats]:
    """Read multipliers as a decision problem: utilities in [0, 1] and weights of the databases.

    ``prices`` are clipped at zero and scaled in place so that their row maxima add up to at most
    one: these maxima are the weights.
    """
    np.maximum(prices, 0.0, out=prices)
    total = math.fsum(prices.max(axis=1))
    if total > 0.0:
        prices *= (1.0 - 8.0 * ULP) / total
    weights = prices.max(axis=1)
    live = np.where(weights > 0.0, weights, 1.0)
    return prices / live[:, None], weights / max(math.fsum(weights), 1e-300)


def _advantage(A: Floats, B: Floats, prices: Floats) -> float:
    """Lower bound from the dual: what following b gains over the best use of a. Rounded down."""
    gained = math.fsum((prices * B).reshape(-1))
    reached = A.T @ prices
    best = math.fsum(reached.max(axis=1))
    return float(gained - best - (len(A) + B.size + 8) * ULP * (gained + best))


def _variation(A: Floats, B: Floats, R: Floats) -> float:
    """Largest total variation between rows of A R and B. Rounded up."""
    reached = A @ R
    missing = np.maximum(B - reached, 0.0) + (A.shape[1] + 4) * ULP * (B + reached)
    worst = raised(missing.sum(axis=1).max(), B.shape[1] + 8)
    return min(float(worst), 1.0)
