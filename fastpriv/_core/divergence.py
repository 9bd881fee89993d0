"""Relative entropy without cancellation: D(w || q) as a sum of non-negative terms.

Where w and q add up to the same total, sum_y w ln(w/q) is the sum of w ln(w/q) - w + q >= 0.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.validation import Floats


def divergence_terms(w: Floats, q: Floats, diff: Floats | None = None) -> Floats:
    """Elementwise w ln(w/q) - w + q >= 0; q where w is 0, infinite where only q is.

    ``diff`` is w - q, where the caller knows it better than this subtraction would. Exact up to
    100 units of roundoff if w, q and diff are exact up to a few.
    """
    from fastpriv import kernels

    apart = w - q if diff is None else diff
    # Kernels are compiled for memory that may be written to, so that these are copies.
    w, q, apart = (np.array(a, order="C") for a in np.broadcast_arrays(w, q, apart))
    terms = np.empty(w.shape)
    kernels.divergence_terms(w.reshape(-1), q.reshape(-1), apart.reshape(-1), terms.reshape(-1))
    return terms


def divergence(w: Floats, q: Floats, diff: Floats | None = None) -> float:
    """Return the sum of these terms: D(w || q) where w and q add up to the same total."""
    return math.fsum(divergence_terms(w, q, diff).reshape(-1).tolist())
