"""Post-processing order of mechanisms: Blackwell's order, Le Cam's deficiency."""

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
    """Whether mechanism b is a post-processing of mechanism a, with a proof.

    It is truthy if b is a post-processing of a up to rounding. Then a leaks at least as much as b
    under every prior, in every measure that obeys data processing.

    Attributes
    ----------
    deficiency : Bracket
        Smallest d such that some processing of a is within total variation d of b (Le Cam 1964).
        The total variation is the maximum over databases, or the mean under a prior. Bounded gains
        use another distance. It is zero if and only if b is a post-processing of a.
    processing : channel or None
        A channel from outputs of a to outputs of b that attains the upper bound.
    prior, utility : ndarray or None
        A decision problem that proves the lower bound if b is no post-processing of a. It is a
        distribution of the databases and the utility ``utility[x, z]`` of decision z. The expected
        utility with b exceeds the expected utility with a by at least the lower bound (Blackwell
        1953). Utilities are in [0, 1]. For bounded gains they are at most 1, and the last decision
        is worth 0. None for products, which are compared record by record.

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
    """Check whether mechanism b is a post-processing of mechanism a, with a proof.

    b is a post-processing of a if B = A R for a channel R from outputs of a to outputs of b
    (Blackwell 1953). Le Cam's deficiency is the minimum over R of the largest total variation
    between rows of A R and B. It is a linear program. Its dual is a decision problem in which b is
    more useful than a.

    Parameters
    ----------
    a, b : channels or 2-D arrays
        The mechanisms, on equally many databases. A 2-D array gets the space of the other
        mechanism.
    prior : Distribution or 1-D array, optional
        Use the mean total variation under this distribution instead of the largest.
    gains : {"unit", "bounded"}
        Class of decision problems. With ``"unit"`` utilities are in [0, 1] and the distance is the
        deficiency. With ``"bounded"`` gains are at most 1, and doing nothing is worth 0. The
        distance is then the additive refinement metric: the smallest missing mass B - A R over R
        with A R <= B whose rows sum to at most 1.
    time_limit : float
        Seconds for each linear program.

    Returns
    -------
    Refinement
        Truthy if the deficiency is at most 1e-9. The returned processing proves the upper bound,
        and the decision problem proves the lower bound.

    Notes
    -----
    Channels that act record by record are compared record by record, if the records are independent
    under a given prior. A product refines a product if and only if each record does. Otherwise
    HiGHS solves a program with N K_a K_b coefficients.

    Raises
    ------
    TooLarge
        If the program has more than 2^23 coefficients.

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
            f"both mechanisms must be on the same databases; got {first.space!r} and "
            f"{second.space!r}. For a matrix use Channel(matrix, sizes)."
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
    """Compare products record by record.

    Processing every record by itself processes the product. Conversely, take a processing of the
    product and fix or draw all records but one. The output of that record is then a processing of
    the record alone, with noise of a known distribution. So the deficiency is at least the largest
    deficiency of a record and at most their sum.
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
            "compare channels that act on each record, or with fewer outputs",
        )
    return deficiency(A, B, prior, bounded, seconds)
