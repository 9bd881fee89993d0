"""A tilted channel relative to its output distribution: differences that do not cancel.

Write W[x, y] = q(y) (1 + u[x, y]). At epsilon 1e-16 the matrix W has lost u. It is computed here
from q and epsilon, from which information and correlation follow with all their digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastpriv._core.divergence import divergence_terms
from fastpriv._core.rounding import LEAST, sum_error
from fastpriv._core.validation import Floats
from fastpriv._core.wide import Wide, wide_exp, wide_powers
from fastpriv.results import Bracket

#: Most entries of a matrix of differences; larger channels take transforms of vectors.
FORMED = 1 << 20
#: Largest epsilon n for which differences are taken; beyond, weights differ too much for them.
SMALL = 30.0


def distances(sizes: tuple[int, ...]) -> Floats:
    """Hamming distances of all pairs of databases."""
    varying = tuple(m for m in sizes if m > 1) or (1,)
    values = np.indices(varying).reshape(len(varying), -1)
    return sum((row[:, None] != row for row in values), np.zeros((values.shape[1],) * 2))


def far_matrix(law: Wide, sizes: tuple[int, ...], epsilon: float) -> Floats:
    """Return W[x, y] of a tilted distribution if some weights q(y) e^(-epsilon d(x, y)) underflow.

    Powers of e^-epsilon are right to 3 n units in the last place. Weights are divided by their own
    sum, so that an output which is nearly certain has a probability of 1.
    """
    powers = wide_powers(wide_exp(-epsilon), len(sizes))[distances(sizes).astype(np.int64)]
    weights = powers * law.reshape(1, -1)
    return (weights / weights.sum(1)).floats()


def wide_home(law: Wide, sizes: Sequence[int], epsilon: float) -> Wide:
    """Return sum_y q(y) e^(-epsilon d(x, y)) for every x, axis by axis."""
    step, apart = wide_exp(-epsilon), -math.expm1(-epsilon)
    home, inner = law, math.prod(sizes)
    for m in sizes:
        inner //= m
        lines = home.reshape(-1, m, inner)
        home = (lines * apart + lines.sum(1) * step).reshape(-1)
    return home


class Excess(NamedTuple):
    """A channel W[x, y] = q(y) (1 + u[x, y]): u, bounds on its errors, and 1 + u.

    If u is close to -1, the sum 1 + u would have lost its digits.
    """

    u: Floats
    errors: Floats
    growth: Floats

    def restricted(self, seen: np.ndarray, alive: np.ndarray) -> Excess:
        """Return the part of some inputs and outputs."""
        return Excess(*(part[np.ix_(seen, alive)] for part in self))


def relative_excess(law: Floats, sizes: tuple[int, ...], epsilon: float) -> Excess:
    """Return u[x, y] for the distribution q tilted by e^(-epsilon d(x, y)).

    Relative to the likeliest output h, B = e^(-epsilon (d(x, y) - d(x, h))) - 1 and
    T(x) = sum_y q(y) B[x, y], in which h has no part, so u = (B - T) / (1 + T). Each of B and T is
    right to a few ulp, u to a few ulp of (|B| + |T|) / (1 + T). Cost O(N^2 n).
    """
    distance = distances(sizes)
    q, likeliest = law / law.sum(), int(np.argmax(law))
    logs = -epsilon * (distance - distance[:, [likeliest]])
    closer = np.expm1(logs)
    mean = (closer @ q)[:, None]
    size = (np.abs(closer) + np.abs(closer) @ q[:, None]) / (1.0 + mean)
    errors = sum_error(len(law), 16) * size + np.where(closer == 0.0, 0.0, LEAST)
    whole = np.exp(logs) @ q
    return Excess((closer - mean) / (1.0 + mean), errors, np.exp(logs) / whole[:, None])


def centred(u: Floats, growth: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return r = W/p_Y - 1 under the prior p, and p_Y/q, the p-mean of 1 + u.

    The likeliest row is subtracted first: differences from it are exact if rows are close.
    """
    apart = u - u[np.argmax(p)]
    ratio = p @ growth
    for _ in range(2):  # the second pass removes the rounding error of the first
        apart = apart - p @ apart
    return np.divide(apart, ratio, out=np.full_like(apart, -1.0), where=ratio > 0.0), ratio


def excess_information(excess: Excess, law: Floats, p: Floats) -> float:
    """Return I(X; Y) = sum_x p(x) sum_y p_Y(y) f(r), f(r) = (1 + r) ln(1 + r) - r >= 0."""
    seen, alive = p > 0.0, law > 0.0
    p, q = p[seen] / p.sum(), law[alive] / law.sum()
    part = excess.restricted(seen, alive)
    r, ratio = centred(part.u, part.growth, p)
    r = np.maximum(r, -1.0)
    terms = divergence_terms(1.0 + r, np.ones(1), r)
    value = float(p @ (terms @ (q * ratio)))
    return max(value, LEAST if (part.u != part.u[:1]).any() else 0.0)


def perturbed(bracket: Bracket, error: float, strong: float = math.inf) -> Bracket:
    """Widen a capacity or a contraction whose matrix has entries with a relative error.

    If W' = W (1 + e) with |e| <= d entry by entry, D(W'_x, q) <= D + d (D + sqrt(2 D)) + d^2/2
    (1 + 2 d), because sum w |ln(w/q)| <= D + 2 sum (q - w)_+ <= D + sqrt(2 D) (Pinsker). So the
    root of a capacity moves by at most d/sqrt(2), up to a factor 1 + d, and the same the other
    way. At a fixed mean the root of a contraction is a norm of P - Q, in which an error d P
    counts at most d sqrt(2).

    ``strong`` is a bound on ln W[x, y]/W[x', y] over all databases, known better than the matrix
    at small epsilon. Both numbers are at most (e^strong - 1)^2 / 4. For a contraction, a term
    b (1 - b) (P - Q)^2 / (b P + (1 - b) Q) is at most (P - Q)^2 / (4 min(P, Q)). For a capacity,
    let q be the mean of the smallest and the largest entry of each column, of mass
    Z <= (1 + e^strong)/2: then D(W_x, q/Z) <= sum (w - q)^2/q <= tanh^2(strong/2) Z.
    """
    d = 2.0 * error
    low = max(math.sqrt(bracket.lower) * (1.0 - d) - d, 0.0) * (1.0 - d)
    high = ((math.sqrt(bracket.upper) + d) * (1.0 + d)) ** 2
    cap = max(0.25 * math.expm1(min(strong, 300.0)) ** 2 * (1.0 + 2.0**-40), LEAST)
    return Bracket(low**2, max(low**2, min(high, cap)) if strong > 0.0 else 0.0)
