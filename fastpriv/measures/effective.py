"""Effective entropy and information, estimated from samples: estimates, without any guarantee."""

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
from fastpriv.errors import InvalidInput

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
    """An estimate from samples. Neither an upper nor a lower bound on anything.

    Attributes
    ----------
    value : float
        In nats per sample.
    samples : int
        How many there were.
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
    """Estimate the entropy of a source as a bounded observer sees it, in nats per sample.

    Yao's effective entropy, on which the computational model of Wu-Xia-He 2020 rests (Section 8,
    Definition 22), is the least expected length of a code that runs in polynomial time; no finite
    program computes it. Here it is estimated by the length that one code, the chosen one, takes
    for the samples. A better code may take less, other samples may take more: no guarantee.

    Parameters
    ----------
    samples : integer array of shape (t,) or (t, n)
        Symbols, or databases, in the order observed. Only equality and order matter.
    compressor : {"lzma", "bz2", "zlib"} or callable from bytes to bytes
        Code by compression of one symbol per byte (two or four if there are many kinds), the
        length of compressing nothing taken off.
    predictor : int or callable
        Code by prediction: an int r is the Krichevsky-Trofimov context model of order r (the
        last r symbols); a callable ``predictor(past, kinds, known)`` gets the symbols so far,
        numbered 0 .. kinds - 1, and None, and returns a law of the next one. By default order 0,
        unless a compressor is given.

    Returns
    -------
    Estimate
        Infinite where a callable gives what came no chance at all.

    Notes
    -----
    A context model of order r over k kinds costs about (k - 1)/2 ln t nats for each of up to k^r
    contexts, spread over the t samples. Cost O(r t log t); callables are called t times.

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
    """Estimate what one sequence tells a bounded observer about another, in nats per sample.

    The effective mutual information I_c(X; Y) of Wu-Xia-He 2020, Section 8, with code lengths
    in place of effective entropies: H(X) + H(Y) - H(X, Y) by a compressor, H(X) - H(X | Y) by a
    predictor that is shown y_t before x_t. An estimate: it may be too large or too small, and
    even negative where the code does not see the relation.

    Parameters
    ----------
    x_samples, y_samples : integer arrays of shape (t,) or (t, n)
        What was secret and what came out, t observations of each.
    compressor, predictor
        As for :func:`effective_entropy`. A callable predictor is asked for the law of x_t twice,
        once with ``known`` None and once with ``known`` = y_0 .. y_t, numbered from 0.

    Returns
    -------
    Estimate
        Difference of code lengths, not clipped.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, 20_000)
    >>> y = x ^ (rng.random(20_000) < 0.1)  # told with noise: ln 2 - H(0.1) = 0.368
    >>> round(fp.effective_information(x, y).value, 2)
    0.37
    """
    x, x_kinds = _symbols(x_samples, "x_samples")
    y, y_kinds = _symbols(y_samples, "y_samples")
    if len(x) != len(y):
        raise InvalidInput(
            f"x_samples and y_samples must be observed together, got {len(x)} and {len(y)} of them"
        )
    length, method = _coder(compressor, predictor)
    if compressor is not None:
        pairs, kinds = _symbols(x * y_kinds + y, "pairs")
        total = length(x, x_kinds, None) + length(y, y_kinds, None) - length(pairs, kinds, None)
    else:
        alone, told = length(x, x_kinds, None), length(x, x_kinds, y)
        if alone == told == math.inf:
            raise InvalidInput(
                "the predictor gave no chance to what came, with y and without; mix its law with a "
                "uniform one"
            )
        total = alone - told
    return Estimate(total / len(x), len(x), method)


#: Nats that a code takes for symbols, given their number of kinds, and a hint for each if any.
Length = Callable[[Ints, int, Ints | None], float]


def _coder(
    compressor: str | Compressor | None, predictor: int | Predictor | None
) -> tuple[Length, str]:
    """Return the length function of the chosen code, and its name."""
    if compressor is not None and predictor is not None:
        raise InvalidInput("give a compressor or a predictor, not both")
    if isinstance(compressor, str):
        if compressor not in _COMPRESSORS:
            raise InvalidInput(
                f"compressor must be one of {sorted(_COMPRESSORS)} or a callable from bytes to "
                f"bytes, got {compressor!r:.40}"
            )
        return _compressed(_COMPRESSORS[compressor]), compressor
    if compressor is not None:
        if not callable(compressor):
            raise InvalidInput(f"compressor must be a name or a callable, got {compressor!r:.40}")
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
    """Number the samples by kind, and count the kinds."""
    given = check.array(samples, name)
    if given.ndim not in (1, 2) or given.size == 0 or given.dtype.kind not in "iub":
        raise InvalidInput(
            f"{name} must be integers of shape (t,) or (t, n), got shape {given.shape} of "
            f"{given.dtype}"
        )
    kinds, numbers = np.unique(given, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), len(kinds)


def _compressed(compress: Compressor) -> Length:
    """Return the length of a compression, less that of compressing nothing."""

    def length(symbols: Ints, kinds: int, hints: Ints | None) -> float:
        width = next(w for w in (1, 2, 4, 8) if kinds <= 1 << (8 * w))
        data = symbols.astype(f"<u{width}").tobytes()
        try:
            size = len(compress(data)) - len(compress(b""))
        except TypeError:
            raise InvalidInput("the compressor must take bytes and return bytes") from None
        return 8.0 * math.log(2.0) * max(0, size)

    return length


def _krichevsky_trofimov(symbols: Ints, kinds: int, hints: Ints | None, order: int) -> float:
    """Code length of counting with 1/2 for each kind, in each context by itself.

    In one context with counts n_a the chances multiply to
    Gamma(k/2)/Gamma(n + k/2) times the product of Gamma(n_a + 1/2)/Gamma(1/2).
    """
    from scipy.special import gammaln

    contexts = np.zeros(len(symbols), dtype=np.int64) if hints is None else hints
    for lag in range(1, min(order, len(symbols)) + 1):  # no symbol has more before it
        # The symbols before the first are of a kind of their own.
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
    """Return the sum of -ln of the chances that a callable gave to what came."""

    def length(symbols: Ints, kinds: int, hints: Ints | None) -> float:
        total = []
        for t, symbol in enumerate(symbols.tolist()):
            known = None if hints is None else hints[: t + 1]
            law: Floats = check.law(predict(symbols[:t], kinds, known), "the predictor's law")
            if len(law) != kinds:
                raise InvalidInput(f"the predictor must return {kinds} chances, got {len(law)}")
            total.append(-math.log(law[symbol]) if law[symbol] > 0.0 else math.inf)
        return math.fsum(total)

    return length
