"""When a mechanism is a post-processing of another: Blackwell's order, Le Cam's deficiency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import raised, sum_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.deficiency import Deficiency, deficiency
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, ProductChannel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.inputs import as_channel
from fastpriv.priors import Distribution, Product
from fastpriv.priors.base import as_prior
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
        Smallest d such that some processing of a is within total variation d of b, for every
        database or on average under a prior (Le Cam 1964); another distance for bounded gains.
        Zero exactly where b is a post-processing of a.
    processing : channel or None
        A channel from outputs of a to outputs of b that reaches the upper bound.
    prior, utility : ndarray or None
        Where the order fails: a distribution of the databases and the utility ``utility[x, z]`` of
        deciding z, for which the outputs of b are worth more than those of a, by at least the
        lower bound (Blackwell 1953). Utilities are in [0, 1], or at most 1 with a last decision
        worth 0 for bounded gains. None for products, where one record shows it.

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

    @property
    def gain(self) -> Floats | None:
        """The separating gain function g[w, x], for :func:`posterior_vulnerability`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> a, b = [[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [0.25, 0.75]]
        >>> no = fp.refines(a, b)
        >>> values = [fp.posterior_vulnerability(c, no.prior, no.gain) for c in (a, b)]
        >>> [round(v, 6) for v in values]
        [0.5, 0.75]
        """
        return None if self.utility is None else np.ascontiguousarray(self.utility.T)

    def __bool__(self) -> bool:
        return self.deficiency.upper <= _ROUNDED

    def __repr__(self) -> str:
        return f"Refinement({bool(self)}, deficiency={self.deficiency!r})"


def refines(
    a: AbstractChannel | ArrayLike,
    b: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None = None,
    *,
    gains: str = "unit",
    time_limit: float = 60.0,
) -> Refinement:
    """Say whether mechanism b is a post-processing of mechanism a, with a proof either way.

    b is a post-processing of a where B = A R for a channel R from outputs of a to outputs of b
    (Blackwell 1953). The distance from it is Le Cam's deficiency, the smallest over R of the
    largest total variation between rows of A R and B. It is a linear program; its dual is a
    decision problem in which b is more useful than a.

    Parameters
    ----------
    a, b : channels or 2-D arrays
        The mechanisms, on equally many databases. A plain matrix takes the other one's space.
    prior : Distribution or 1-D array, optional
        Take the mean over databases with this distribution in place of the largest.
    gains : {"unit", "bounded"}
        Decision problems over which b is compared with a. With ``"unit"``, utilities in [0, 1], the
        distance is the deficiency. With ``"bounded"``, gains of at most 1 and the choice to do
        nothing, worth 0, it is the smallest mass that is missing from a part A R <= B, the rows of
        R adding up to at most 1: the additive refinement metric.
    time_limit : float
        Seconds for each linear program.

    Returns
    -------
    Refinement
        Truthy where the deficiency is at most 1e-9. Its bracket is proved: the upper bound by the
        processing that is returned, the lower bound by the decision problem.

    Notes
    -----
    Channels that act record by record, with independent records if a prior is given, are compared
    row by row: a product refines a product exactly where each record does. Otherwise a program with
    N K_a K_b coefficients is solved by HiGHS.

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
    >>> fp.refines([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]], prior=[0.9, 0.1]).deficiency
    Bracket(0.09999999999, 0.1000000001)
    """
    time_limit = check.real(time_limit, "time_limit", least=0.0)
    bounded = check.word(gains, "gains", ("unit", "bounded")) == "bounded"
    first = as_channel(a, b.space if isinstance(b, AbstractChannel) else None)
    second = as_channel(b, first.space)
    if first.space != second.space:
        raise InvalidInput(
            f"both mechanisms must be about the same databases, got {first.space!r} and "
            f"{second.space!r}"
        )
    law = None if prior is None else as_prior(prior, first.space)
    rows = first.kernels, second.kernels
    by_rows = first.space.n > 1 and (law is None or isinstance(law, Product))
    if rows[0] is None or rows[1] is None or not by_rows:
        pmf = None if law is None else law.probabilities()
        whole = _compared(first.nearest_matrix(), second.nearest_matrix(), pmf, bounded, time_limit)
        bracket = Bracket(whole.lower, whole.upper)
        return Refinement(bracket, Channel(whole.processing), whole.prior, whole.utility)
    assert law is None or isinstance(law, Product)
    return _row_by_row(rows[0], rows[1], law, bounded, time_limit)


def _row_by_row(
    first: RowKernels, second: RowKernels, prior: Product | None, bounded: bool, time_limit: float
) -> Refinement:
    """Compare products through their rows.

    Processing every record by itself processes the product. Conversely, hold all rows but one
    fixed, or draw them, in a processing of the product and look at that row's output alone: it is a
    processing of the row, fed with noise of a known distribution. So the deficiency is at least the
    largest of the rows' and at most their sum.
    """
    laws = np.zeros_like(first.assignment) if prior is None else prior.assignment
    parts_of = np.stack([first.assignment, second.assignment, laws], axis=1)
    kinds, which, counts = np.unique(parts_of, axis=0, return_inverse=True, return_counts=True)
    parts = [
        _compared(
            first.distinct[s].matrix,
            second.distinct[t].matrix,
            None if prior is None else prior.distinct[k],
            bounded,
            time_limit,
        )
        for s, t, k in kinds.tolist()
    ]
    lower = max(part.lower for part in parts)
    uppers = [part.upper for part in parts]
    total = sum_up([raised(u * count, 2.0) for u, count in zip(uppers, counts, strict=True)])
    kernels = RowKernels(
        [RowKernel(np.array(part.processing)) for part in parts], which.reshape(-1)
    )
    processing = ProductChannel.of(kernels)
    return Refinement(Bracket(lower, max(lower, min(total, 1.0))), processing)


def _compared(
    A: Floats, B: Floats, prior: Floats | None, bounded: bool, seconds: float
) -> Deficiency:
    """Solve the program for two matrices."""
    A, B = np.asarray(A), np.asarray(B)
    entries = len(A) * A.shape[1] * B.shape[1]
    if entries > _LARGEST:
        raise TooLarge.entries(
            "the linear program of the comparison",
            entries,
            "compare channels that act row by row, or with fewer outputs",
        )
    return deficiency(A, B, prior, bounded, seconds)
