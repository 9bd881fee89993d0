"""Estimates of effective entropy and information from samples, without any guarantee."""

from __future__ import annotations

import bz2
import lzma
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput, described

__all__ = ["Estimate", "effective_entropy", "effective_information"]

Compressor = Callable[[bytes], bytes]
Predictor = Callable[[Ints, int, Ints | None], ArrayLike]

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
_COMPRESSORS: dict[str, Compressor] = {
    "bz2": bz2.compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_RAW, filters=_FILTERS),
    "zlib": lambda data: zlib.compress(data, 9),
}


@dataclass(frozen=True)
class Estimate:
    """An estimate from samples. It is neither an upper nor a lower bound.

    Attributes
    ----------
    value : float
        The estimate in nats per sample.
    samples : int
        Number of samples.
    method : str
        The compressor or predictor.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.effective_entropy([0, 1] * 500, predictor=1)
    Estimate(0.008052, 1000 samples, KT order 1, no guarantee)
    """

    value: float
    samples: int
    method: str

    def __repr__(self) -> str:
        return f"Estimate({self.value:.4g}, {self.samples} samples, {self.method}, no guarantee)"


def effective_entropy(
    samples: ArrayLike,
    *,
    compressor: str | Compressor | None = None,
    predictor: int | Predictor | None = None,
) -> Estimate:
    """Estimate the entropy of a source for a computationally bounded observer, in nats per sample.

    Yao's effective entropy is the smallest expected length of a code that runs in polynomial time
    (Wu-Xia-He 2020, Section 8, Definition 22). No finite program computes it. The estimate is the
    length of the samples in one chosen code. A better code may be shorter, and other samples may be
    longer, so there is no guarantee.

    Parameters
    ----------
    samples : integer array of shape (t,) or (t, n)
        Symbols or databases in the order of observation. Only their order and equality matter.
    compressor : {"lzma", "bz2", "zlib"} or callable from bytes to bytes
        Code by compression of one symbol per byte (two or four if there are many symbols). The
        length of compressed empty data is subtracted.
    predictor : int or callable
        Code by prediction: an int r is the Krichevsky-Trofimov context model of order r (the last r
        symbols). A callable ``predictor(past, kinds, known)`` gets the symbols so far, numbered 0
        .. kinds - 1, their number of kinds, and None. It returns a distribution of the next symbol.
        The default is order 0, unless a compressor is given.

    Returns
    -------
    Estimate
        Infinite if a callable gives probability zero to a symbol that occurred.

    Notes
    -----
    A context model of order r over k kinds of symbols adds about (k - 1)/2 ln t nats for each of
    up to k^r contexts to the length of t samples. Cost O(r t log t). Callables are called t times.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> coins = np.random.default_rng(0).integers(0, 2, 10_000)
    >>> round(fp.effective_entropy(coins).value, 3)  # ln 2 = 0.693
    0.694
    >>> fp.effective_entropy(coins, compressor="lzma").value > 0.6
    True
    """
    symbols, kinds = _symbols(samples, "samples")
    length, method = _coder(compressor, predictor)
    return Estimate(length(symbols, kinds, None) / len(symbols), len(symbols), method)


def effective_information(
    x_samples: ArrayLike,
    y_samples: ArrayLike,
    *,
    compressor: str | Compressor | None = None,
    predictor: int | Predictor | None = None,
) -> Estimate:
    """Estimate the information of one sequence about another for a bounded observer.

    It estimates I_c(X; Y) of Wu-Xia-He 2020, Section 8, with code lengths in place of effective
    entropies. A compressor gives H(X) + H(Y) - H(X, Y). A predictor that sees y_t before x_t gives
    H(X) - H(X | Y). The estimate may be too large, too small, or even negative if the code does not
    exploit the relation.

    Parameters
    ----------
    x_samples, y_samples : integer arrays of shape (t,) or (t, n)
        The secret data and the outputs, t observations of each.
    compressor, predictor
        As for :func:`effective_entropy`. A callable predictor is called twice for the distribution
        of x_t, with ``known`` None and with ``known`` = y_0 .. y_t, numbered from 0.

    Returns
    -------
    Estimate
        Difference of code lengths in nats per sample. It may be negative.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, 20_000)
    >>> y = x ^ (rng.random(20_000) < 0.1)  # a noisy copy: ln 2 - H(0.1) = 0.368
    >>> round(fp.effective_information(x, y).value, 2)
    0.37
    """
    x, x_kinds = _symbols(x_samples, "x_samples")
    y, y_kinds = _symbols(y_samples, "y_samples")
    if len(x) != len(y):
        raise InvalidInput(
            f"x_samples and y_samples must be observed together; got {len(x)} and {len(y)} of them."
        )
    length, method = _coder(compressor, predictor)
    if compressor is not None:
        pairs, kinds = _symbols(x * y_kinds + y, "pairs")
        total = length(x, x_kinds, None) + length(y, y_kinds, None) - length(pairs, kinds, None)
    else:
        alone, told = length(x, x_kinds, None), length(x, x_kinds, y)
        if alone == told == math.inf:
            raise InvalidInput(
                "the predictor gave probability 0 to what came, with y and "
                "without; mix its distribution with a "
                "uniform one."
            )
        total = alone - told
    return Estimate(total / len(x), len(x), method)


#: Code length in nats of symbols, given their number of kinds and perhaps a hint for each.
Length = Callable[[Ints, int, Ints | None], float]


def _coder(
    compressor: str | Compressor | None, predictor: int | Predictor | None
) -> tuple[Length, str]:
    """Return the length function of the chosen code, and its name."""
    if compressor is not None and predictor is not None:
        raise InvalidInput("one of compressor and predictor must be left out.")
    if isinstance(compressor, str):
        if compressor not in _COMPRESSORS:
            raise InvalidInput(
                f"compressor must be one of {sorted(_COMPRESSORS)} or a callable from bytes to "
                f"bytes; got {described(compressor)}."
            )
        return _compressed(_COMPRESSORS[compressor]), compressor
    if compressor is not None:
        if not callable(compressor):
            raise InvalidInput(
                f"compressor must be a name or a callable; got {described(compressor)}."
            )
        return _compressed(compressor), _name(compressor)
    if callable(predictor):
        return _predicted(predictor), _name(predictor)
    order = 0 if predictor is None else check.integer(predictor, "predictor", 0)

    def contexts(symbols: Ints, kinds: int, hints: Ints | None) -> float:
        return _krichevsky_trofimov(symbols, kinds, hints, order)

    return contexts, f"KT order {order}"


def _name(code: object) -> str:
    return getattr(code, "__name__", type(code).__name__)


def _symbols(samples: ArrayLike, name: str) -> tuple[Ints, int]:
    """Number the distinct samples. Return the number of each sample, and how many there are."""
    given = check.array(samples, name)
    if given.ndim not in (1, 2) or given.size == 0 or given.dtype.kind not in "iub":
        raise InvalidInput(
            f"{name} must be integers of shape (t,) or (t, n); got shape {given.shape} of "
            f"{given.dtype}."
        )
    kinds, numbers = np.unique(given, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), len(kinds)


def _compressed(compress: Compressor) -> Length:
    """Return the code length of a compressor: compressed data minus compressed empty data."""

    def length(symbols: Ints, kinds: int, hints: Ints | None) -> float:
        width = next(w for w in (1, 2, 4, 8) if kinds <= 1 << (8 * w))
        data = symbols.astype(f"<u{width}").tobytes()
        try:
            size = len(compress(data)) - len(compress(b""))
        except TypeError:
            raise InvalidInput(
                "compressor must take bytes and return bytes, as zlib.compress does."
            ) from None
        return 8.0 * math.log(2.0) * max(0, size)

    return length


def _krichevsky_trofimov(symbols: Ints, kinds: int, hints: Ints | None, order: int) -> float:
    """Code length of the Krichevsky-Trofimov estimator, in each context by itself.

    In a context with counts n_a the product of the probabilities is
    Gamma(k/2)/Gamma(n + k/2) times the product of Gamma(n_a + 1/2)/Gamma(1/2).
    """
    from scipy.special import gammaln

    contexts = np.zeros(len(symbols), dtype=np.int64) if hints is None else hints
    for lag in range(1, min(order, len(symbols)) + 1):  # no context is longer than the data
        # Positions before the first symbol hold a symbol of their own.
        before = np.concatenate([np.full(min(lag, len(symbols)), kinds), symbols[:-lag]])
        contexts = np.unique(contexts * (kinds + 1) + before, return_inverse=True)[1].reshape(-1)
    totals = np.unique(contexts, return_counts=True)[1].astype(np.float64)
    counts = np.unique(contexts * kinds + symbols, return_counts=True)[1].astype(np.float64)
    half = 0.5 * kinds
    return float(
        (gammaln(totals + half) - gammaln(half)).sum()
        - (gammaln(counts + 0.5) - gammaln(0.5)).sum()
    )


def _predicted(predict: Predictor) -> Length:
    """Return the code length of a predictor: the sum of -ln of the predicted probabilities."""

    def length(symbols: Ints, kinds: int, hints: Ints | None) -> float:
        total = []
        for t, symbol in enumerate(symbols.tolist()):
            known = None if hints is None else hints[: t + 1]
            law: Floats = check.law(
                predict(symbols[:t], kinds, known), "the predictor's distribution"
            )
            if len(law) != kinds:
                raise InvalidInput(
                    f"the predictor must return {kinds} probabilities; got {len(law)}."
                )
            total.append(-math.log(law[symbol]) if law[symbol] > 0.0 else math.inf)
        return math.fsum(total)

    return length
