"""Messages that support some values: the common part of the local mechanisms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import inwards
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.rows import inner_level
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

__all__ = ["SupportChannel"]

#: Digits of decimals, enough for every number that is rounded to a double, even at level 1e-8.
EXACT = Context(prec=60)
#: Largest level: e^epsilon does not overflow these decimals.
_MOST = 1e5
#: Most values of a record.
MOST_VALUES = 1 << 22
#: Most entries of a matrix that is used if a structure would give only a bracket.
SMALL = 1 << 16


class SupportChannel(AbstractChannel):
    """One record of k values; a message y supports the values of a set S(y).

    p(y|x) = b(y) e^(epsilon [x in S(y)]) / Z with Z = 1 + (e^epsilon - 1) pi. Here b is a
    distribution of messages under which every value is supported with the same probability pi. Two
    values are both supported with a probability pi_2 that depends only on the kind of pair. Most
    measures need only these numbers and the distribution of the size of S(y), not the matrix.

    A subclass sets ``epsilon``, ``space``, ``output_space``, ``inclusion`` (pi), ``joint`` (pi_2 of
    every kind of pair that exists) and ``growth``, the factor that its sampler realises instead of
    e^epsilon. It defines ``draw_messages``, ``members`` and ``tally``. It defines ``masses`` if its
    messages are equally likely under b and can be listed.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.SubsetChannel(4, 1.0, size=2)
    >>> channel.inclusion, channel.joint
    (Fraction(1, 2), (Fraction(1, 6),))
    >>> channel.support_counts([[0, 1], [1, 3]])
    array([1., 2., 0., 1.])
    """

    #: The requested level; draws have at most this level.
    epsilon: float
    #: Probability that a message of the distribution b supports a value.
    inclusion: Fraction
    #: Probability that it supports both of two values, for every kind of pair.
    joint: tuple[Fraction, ...]
    #: The exact factor that draws realise instead of e^epsilon.
    growth: Fraction
    #: Number of messages if they can be listed, otherwise None.
    listed: int | None = None
    #: Parameters of the mechanism other than k and epsilon.
    _parameter: ClassVar[str]
    #: Numbers in a message, None if a message is one number.
    width: int | None = None
    #: Whether every permutation of the values leaves the mechanism unchanged.
    symmetric: bool = False

    def _set(self, k: int, epsilon: float) -> None:
        self.space = Space.of((_checked_size(k),))
        self.epsilon = check.real(epsilon, "epsilon", least=0.0, most=_MOST)

    @property
    def k(self) -> int:
        """Number of values."""
        return self.space.sizes[0]

    # Defined by the subclasses.

    @abstractmethod
    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        """List b(y) and [x in S(y)], a (k, K) array; only if messages can be listed."""

    @abstractmethod
    def members(self, report: Ints) -> NDArray[np.bool_]:
        """Return the values that one message supports, given as an element of the output space."""

    @abstractmethod
    def tally(self, reports: Codes) -> Floats:
        """Count messages in a form that adds up over parts and from which counts are estimated."""

    def supports(self, tally: Floats) -> Floats:
        """Return how many of the counted messages support each value."""
        return tally

    @property
    @abstractmethod
    def empty_mass(self) -> Decimal:
        """Probability under b that a message supports no value."""

    def masses(self, weights: Floats) -> Floats:
        """Return the sum of weights over S(y) for every listed message y."""
        raise NotImplementedError

    # Common to all subclasses.

    @cached_property
    def odds(self) -> Decimal:
        """The factor e^epsilon that measures use."""
        with localcontext(EXACT):
            return 1 + self.excess

    @cached_property
    def excess(self) -> Decimal:
        """That factor less 1, with all its digits even for small epsilon."""
        if self.epsilon == 0.0:
            return Decimal(0)
        epsilon = Decimal(self.epsilon)
        lost = max(0, -epsilon.adjusted())  # digits lost to the 1
        with localcontext(Context(prec=EXACT.prec + lost)):
            return epsilon.exp() - 1

    @property
    def level(self) -> float:
        """The logarithm of that factor, rounded up."""
        return self.epsilon

    @cached_property
    def shrink(self) -> tuple[float, float]:
        """The inverse r of the factor, and 1 - r, both rounded correctly."""
        with localcontext(EXACT):
            return float(1 / self.odds), float(self.excess / self.odds)

    def total_weight(self) -> Decimal:
        """Z = 1 + (e^epsilon - 1) pi."""
        return 1 + self.excess * _decimal(self.inclusion)

    @cached_property
    def separation(self) -> Fraction:
        """Largest probability under b that a message supports exactly one of two values."""
        return self.inclusion - min(self.joint)

    def most_different_rows(self) -> Floats:
        """Rows of the two values that differ most; outputs of equal likelihood ratio are merged."""
        with localcontext(EXACT):
            own = _decimal(self.separation) / self.total_weight()
            more, less = float(own * self.odds), float(own)
            rest = float(1 - own * (self.odds + 1))
        return np.array([[more, less, rest], [less, more, rest]])

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an array of k rows and a column for each message.

        It is rounded inwards: its level is at most the level of the channel.
        """
        with localcontext(EXACT):
            odds = Decimal(inner_level(self.level, 1, self.k)).exp()
        return inwards(self._rounded(odds), self.space.axes, self.level)

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles."""
        return self._rounded(self.odds)

    @property
    def matrix_error(self) -> float:
        """Bound on the relative error of entries, which are rounded weights of an output."""
        return roundoff(self.k + 8)

    def _rounded(self, odds: Decimal) -> Floats:
        """Return the matrix with a factor e^epsilon of supported values, to the nearest doubles."""
        self.check_matrix_fits()
        base, member = self.support_table()
        with localcontext(EXACT):
            total = 1 + (odds - 1) * _decimal(self.inclusion)
            low, high = float(1 / total), float(odds / total)
        return np.ascontiguousarray(base * np.where(member, high, low))

    def is_small(self) -> bool:
        """Whether the matrix is small enough to be used instead of a bracket."""
        return self.k * self.output_count <= SMALL

    def check_matrix_fits(self) -> None:
        count = self.k * self.output_count
        if count > check.MAX_MATRIX:
            raise TooLarge(
                f"the matrix of {self!r} would have {short(count)} entries, more than "
                f"{short(check.MAX_MATRIX)}; use measures that it answers without its matrix, or "
                "fewer values."
            )

    def output_distribution(self, prior: Distribution) -> Dense:
        if self.listed is None:
            return Dense(prior.probabilities() @ self.nearest_matrix(), self.column_space.sizes)
        r, loss = self.shrink
        law = r + loss * np.clip(self.masses(prior.probabilities()), 0.0, 1.0)
        return Dense.of(law / law.sum(), self.output_space)

    def draw(self, rows: Codes, source: Source) -> Codes:
        return self.draw_messages(rows[:, 0].astype(np.int64), source)

    @abstractmethod
    def draw_messages(self, values: Ints, source: Source) -> Codes:
        """Draw a message for every value."""

    # Frequencies.

    def support_counts(self, reports: ArrayLike) -> Floats:
        """Return how many messages support each value.

        Parameters
        ----------
        reports : integer array
            The result of ``sample``, or part of it.
        """
        return self.supports(self.tally(self.checked_reports(reports)))

    def checked_reports(self, reports: ArrayLike) -> Codes:
        given = np.asarray(reports)
        if given.dtype.kind == "b":
            given = given.view(np.uint8)
        wanted = () if self.width is None else (self.width,)
        if given.ndim == 0 or given.shape[1:] != wanted or given.dtype.kind not in "iu":
            raise InvalidInput(
                f"messages of {self!r} must be integers of shape (messages, "
                f"{self.width or ''}); got shape {given.shape} of {given.dtype}. Give messages "
                "as sample returned them."
            )
        sizes = np.array(self.output_space.sizes)
        if given.size and (given.min() < 0 or (given >= sizes).any()):
            raise InvalidInput(
                f"messages of {self!r} must be in its range of outputs; a number is outside. "
                "Give messages as sample returned them."
            )
        return given

    @cached_property
    def response(self) -> tuple[Fraction, Fraction]:
        """Probabilities that a message supports its own value, and that it supports another value.

        If there are several kinds of pairs, the other value is of the kind that is supported
        together most often.
        """
        total = 1 + (self.growth - 1) * self.inclusion
        pairs = max(self.joint)
        own = self.growth * self.inclusion / total
        return own, (self.inclusion + (self.growth - 1) * pairs) / total

    def variance(self, share: float = 0.0) -> float:
        """Return the variance of an estimated count per record, if a share of records holds it.

        With p and q the probabilities of :attr:`response`, the estimate of n_x is (c_x - n q)/(p -
        q), where c_x is the number of messages that support x. For a fixed table its variance is
        (n_x p (1-p) + (n - n_x) q (1-q))/(p - q)^2 (Wang, Blocki, Li and Jha 2017, Theorem 2). p
        and q are the exact probabilities of the draws.

        Parameters
        ----------
        share : float
            Share of the records that hold the value.
        """
        held = Fraction(check.real(share, "share", least=0.0, most=1.0))
        own, other = self._record_variances()
        return float(held * own + (1 - held) * other)

    def _record_variances(self) -> tuple[Fraction, Fraction]:
        """Return the variance added by a record that holds the value, and by one that does not."""
        p, q = self.response
        if p == q:
            raise cannot_undo()
        return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2

    def moments(self, tally: Floats, n: int) -> tuple[Floats, Floats]:
        """Estimate counts of all values from a tally of n messages, and the variances."""
        own, other = map(float, self._record_variances())
        p, q = self.response
        estimates = (self.supports(tally) - n * float(q)) / float(p - q)
        return estimates, np.maximum(n * other + estimates * (own - other), n * min(own, other))

    def __repr__(self) -> str:
        last = f"{self._parameter}={getattr(self, self._parameter)!r}"
        return f"{type(self).__name__}(k={self.k}, epsilon={self.epsilon:g}, {last})"

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Any:
        make: Any = cls
        return make(given["k"], given["epsilon"], given[cls._parameter])


def _checked_size(k: int) -> int:
    number = check.integer(k, "k", 2)
    if number > MOST_VALUES:
        raise TooLarge(
            f"a local mechanism takes at most {short(MOST_VALUES)} values; got {short(number)}. "
            "Use coarser values."
        )
    return number


def cannot_undo() -> InvalidInput:
    """Build the error for a level of 0."""
    return InvalidInput(
        "the mechanism cannot be undone: at level 0 reports say nothing about the values; use a "
        "positive epsilon"
    )


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator
