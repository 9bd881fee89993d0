"""Linear algebra of the interior-point method for the privacy programs.

A block is one output: a vector over classes with a slack s = r (1 + c) v[t] - v[s] for every
ordered pair of neighbouring classes. Its normal matrix H = A' D A couples neighbours only, so its
Cholesky factor stays within a band. Factors are stored by rows, L[i, i-band .. i], one block after
the other.
"""

import math

import numpy as np

from .declare import Ints, Matrix, Vector, helper, kernel


@kernel()
def cone_slack(
    v: Vector, source: Ints, target: Ints, ratio: Vector, growth: float, out: Vector
) -> None:
    """Set out = ratio v[target] - v[source] + growth ratio v[target], difference first."""
    for e in range(source.shape[0]):
        reach = ratio[e] * v[target[e]]
        out[e] = (reach - v[source[e]]) + growth * reach


@kernel()
def cone_adjoint(
    weight: Vector, source: Ints, target: Ints, ratio: Vector, growth: float, out: Vector
) -> None:
    """Set out = A' weight, the transpose of `cone_slack`."""
    out[:] = 0.0
    for e in range(source.shape[0]):
        out[target[e]] += (1.0 + growth) * ratio[e] * weight[e]
        out[source[e]] -= weight[e]


@helper()
def _cholesky(L, size, band, column):
    """Factor a banded matrix in place; a pivot lost to rounding freezes its variable."""
    for k in range(size):
        pivot = L[k, band]
        root = math.sqrt(pivot) if pivot > 1e-15 else 1e64
        L[k, band] = root
        last = min(size, k + band + 1)
        for i in range(k + 1, last):
            L[i, k - i + band] /= root
            column[i - k - 1] = L[i, k - i + band]
        for i in range(k + 1, last):
            factor = column[i - k - 1]
            if factor != 0.0:
                shift = k + 1 - i + band
                for j in range(i - k):
                    L[i, shift + j] -= factor * column[j]


@helper(fastmath={"contract"})
def _add_products(X, i, count, out):
    """Add X' X of four rows to the lower triangle of ``out``."""
    for a in range(count):
        one, two, three, four = X[i, a], X[i + 1, a], X[i + 2, a], X[i + 3, a]
        for j in range(a + 1):
            out[a, j] += (one * X[i, j] + two * X[i + 1, j]) + (
                three * X[i + 2, j] + four * X[i + 3, j]
            )


@kernel(fastmath={"contract"})
def cone_factor(
    diagonal_weight: Vector,
    source: Ints,
    target: Ints,
    ratio: Vector,
    growth: float,
    row: Ints,
    starts: Ints,
    edges: Ints,
    bands: Ints,
    places: Ints,
    first: int,
    last: int,
    factors: Vector,
    scales: Vector,
    schur: Matrix,
) -> None:
    """Factor the blocks ``first`` to ``last`` - 1 and add their B H^-1 B' to ``schur``.

    Block j has classes ``starts[j]:starts[j+1]``, pairs ``edges[j]:edges[j+1]`` and its factor at
    ``factors[places[j]:]``; class v counts towards equation ``row[v]``. H is scaled to a unit
    diagonal first, which costs Cholesky nothing and keeps twenty orders of magnitude apart.
    """
    equations = schur.shape[0]
    for j in range(first, last):
        start, size, band = starts[j], starts[j + 1] - starts[j], bands[j]
        L = factors[places[j] : places[j] + size * (band + 1)].reshape((size, band + 1))
        L[:] = 0.0
        scale = scales[start : start + size]
        scale[:] = 0.0
        for e in range(edges[j], edges[j + 1]):
            a = (1.0 + growth) * ratio[e]
            scale[source[e] - start] += diagonal_weight[e]
            scale[target[e] - start] += a * a * diagonal_weight[e]
        for v in range(size):
            scale[v] = 1.0 / math.sqrt(scale[v]) if scale[v] > 0.0 else 1.0
            L[v, band] = 1.0
        for e in range(edges[j], edges[j + 1]):
            u, w = source[e] - start, target[e] - start
            high, low = max(u, w), min(u, w)
            value = (1.0 + growth) * ratio[e] * diagonal_weight[e] * scale[u] * scale[w]
            L[high, low - high + band] -= value
        _cholesky(L, size, band, np.empty(band + 1))
        # Columns in the order in which the equations first appear: X = L^-1 B' then fills up from
        # the left, and the loops skip its zeros.
        rank = np.full(equations, -1)
        seen = np.empty(size, np.int64)
        order = np.empty(equations, np.int64)
        count = 0
        for v in range(size):
            r = row[start + v]
            if rank[r] < 0:
                rank[r] = count
                order[count] = r
                count += 1
            seen[v] = count
        X = np.zeros((size, count))
        local = np.zeros((count, count))
        for i in range(size):
            x = X[i]
            x[rank[row[start + i]]] = scale[i]
            # Four rows at a time: x is read and written once for them.
            k = max(0, i - band)
            while k + 4 <= i:
                a, b = L[i, k - i + band], L[i, k + 1 - i + band]
                c, d = L[i, k + 2 - i + band], L[i, k + 3 - i + band]
                for j in range(seen[k + 3]):
                    x[j] -= (a * X[k, j] + b * X[k + 1, j]) + (c * X[k + 2, j] + d * X[k + 3, j])
                k += 4
            for e in range(k, i):
                a = L[i, e - i + band]
                for j in range(seen[e]):
                    x[j] -= a * X[e, j]
            inverse = 1.0 / L[i, band]
            for j in range(seen[i]):
                x[j] *= inverse
            if i % 4 == 3:
                _add_products(X, i - 3, seen[i], local)
        for i in range(size - size % 4, size):
            for a in range(count):
                for j in range(a + 1):
                    local[a, j] += X[i, a] * X[i, j]
        for a in range(count):
            for c in range(a):
                schur[order[a], order[c]] += local[a, c]
                schur[order[c], order[a]] += local[a, c]
            schur[order[a], order[a]] += local[a, a]


@kernel()
def cone_normal(
    weight: Vector,
    source: Ints,
    target: Ints,
    ratio: Vector,
    growth: float,
    row: Ints,
    first: int,
    last: int,
    out: Matrix,
) -> None:
    """Set out to the normal matrix of the pairs ``first`` to ``last`` - 1, by equations."""
    out[:] = 0.0
    for e in range(first, last):
        u, w = row[source[e]], row[target[e]]
        a = (1.0 + growth) * ratio[e]
        out[u, u] += weight[e]
        out[w, w] += a * a * weight[e]
        out[u, w] -= a * weight[e]
        out[w, u] -= a * weight[e]


@kernel(fastmath={"contract", "reassoc"})
def cone_solve(
    rhs: Vector,
    starts: Ints,
    bands: Ints,
    places: Ints,
    factors: Vector,
    scales: Vector,
    first: int,
    last: int,
    out: Vector,
) -> None:
    """Set out = H^-1 rhs on the blocks ``first`` to ``last`` - 1, from their factors."""
    for j in range(first, last):
        start, size, band = starts[j], starts[j + 1] - starts[j], bands[j]
        L = factors[places[j] : places[j] + size * (band + 1)].reshape((size, band + 1))
        x = out[start : start + size]
        for i in range(size):
            total = rhs[start + i] * scales[start + i]
            for k in range(max(0, i - band), i):
                total -= L[i, k - i + band] * x[k]
            x[i] = total / L[i, band]
        for i in range(size - 1, -1, -1):
            x[i] /= L[i, band]
            factor = x[i]
            for k in range(max(0, i - band), i):
                x[k] -= L[i, k - i + band] * factor
        for i in range(size):
            x[i] *= scales[start + i]


@kernel()
def cone_closure(v: Vector, source: Ints, target: Ints, shrink: float, sweeps: int) -> bool:
    """Raise entries until v[target] >= shrink v[source] for all pairs; True when done.

    A raise travels along paths, so it takes at most as many sweeps as a path has steps.
    """
    for _ in range(sweeps):
        changed = False
        for e in range(source.shape[0]):
            least = shrink * v[source[e]]
            if v[target[e]] < least:
                v[target[e]] = least
                changed = True
        if not changed:
            return True
    return False


@kernel()
def cone_ceiling(
    v: Vector, source: Ints, target: Ints, ratio: Vector, grow: float, sweeps: int
) -> None:
    """Lower entries until v[source] <= grow ratio v[target] for all pairs, or sweeps run out."""
    for _ in range(sweeps):
        changed = False
        for e in range(source.shape[0]):
            most = grow * ratio[e] * v[target[e]]
            if v[source[e]] > most:
                v[source[e]] = most
                changed = True
        if not changed:
            return
