"""In-place mixed-radix axis transform, v <- v + c (S - m v) along each axis.

The vector is worked on in pieces that fit in cache, each stored contiguously,
so that every inner loop runs over adjacent elements and is vectorised.
"""

import numpy as np

from .declare import IntMatrix, Vector, helper, kernel, uint64

ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
CHUNK = 512  # columns of the running sums held at once by `general`


@helper()
def pair(x, y, c):
    """One axis of size 2."""
    t = c * (x - y)
    return x - t, y + t


@helper()
def four(w, x, y, z, c, d):
    """Two axes of size 2."""
    w, y = pair(w, y, c)
    x, z = pair(x, z, c)
    w, x = pair(w, x, d)
    y, z = pair(y, z, d)
    return w, x, y, z


@helper()
def eight(w, x, y, z, W, X, Y, Z, c, d, e):
    """Three axes of size 2."""
    w, W = pair(w, W, c)
    x, X = pair(x, X, c)
    y, Y = pair(y, Y, c)
    z, Z = pair(z, Z, c)
    w, x, y, z = four(w, x, y, z, d, e)
    W, X, Y, Z = four(W, X, Y, Z, d, e)
    return w, x, y, z, W, X, Y, Z


@helper()
def radix2(a, p, h, c):
    """One axis of size 2 and stride h over a[p:p+2h], in place."""
    p0, p1 = uint64(p), uint64(p + h)
    for j in range(uint64(h)):
        a[p0 + j], a[p1 + j] = pair(a[p0 + j], a[p1 + j], c)


@helper()
def radix4(a, p, h, c, d):
    """Two axes of size 2, strides 2h and h, over a[p:p+4h], in place."""
    p0, p1, p2, p3 = uint64(p), uint64(p + h), uint64(p + 2 * h), uint64(p + 3 * h)
    for j in range(uint64(h)):
        w, x, y, z = four(a[p0 + j], a[p1 + j], a[p2 + j], a[p3 + j], c, d)
        a[p0 + j], a[p1 + j], a[p2 + j], a[p3 + j] = w, x, y, z


@helper()
def radix8(a, p, h, c, d, e):
    """Three axes of size 2, strides 4h, 2h and h, over a[p:p+8h], in place."""
    q = p + 4 * h
    p0, p1, p2, p3 = uint64(p), uint64(p + h), uint64(p + 2 * h), uint64(p + 3 * h)
    q0, q1, q2, q3 = uint64(q), uint64(q + h), uint64(q + 2 * h), uint64(q + 3 * h)
    for j in range(uint64(h)):
        w, x, y, z, W, X, Y, Z = eight(
            a[p0 + j],
            a[p1 + j],
            a[p2 + j],
            a[p3 + j],
            a[q0 + j],
            a[q1 + j],
            a[q2 + j],
            a[q3 + j],
            c,
            d,
            e,
        )
        a[p0 + j], a[p1 + j], a[p2 + j], a[p3 + j] = w, x, y, z
        a[q0 + j], a[q1 + j], a[q2 + j], a[q3 + j] = W, X, Y, Z


@helper()
def turn4(a, p, b, q, h, c, d):
    """As radix4, from a[p:p+4h] to b[q:q+4h] with the two axes moved to the end."""
    p0, p1, p2, p3 = uint64(p), uint64(p + h), uint64(p + 2 * h), uint64(p + 3 * h)
    for j in range(uint64(h)):
        i = uint64(q) + uint64(4) * j
        w, x, y, z = four(a[p0 + j], a[p1 + j], a[p2 + j], a[p3 + j], c, d)
        b[i], b[i + ONE], b[i + TWO], b[i + THREE] = w, x, y, z


@helper()
def turn8(a, p, b, q, h, c, d, e):
    """As radix8, from a[p:p+8h] to b[q:q+8h] with the three axes moved to the end."""
    r = p + 4 * h
    p0, p1, p2, p3 = uint64(p), uint64(p + h), uint64(p + 2 * h), uint64(p + 3 * h)
    r0, r1, r2, r3 = uint64(r), uint64(r + h), uint64(r + 2 * h), uint64(r + 3 * h)
    for j in range(uint64(h)):
        i = uint64(q) + uint64(8) * j
        k = i + uint64(4)
        w, x, y, z, W, X, Y, Z = eight(
            a[p0 + j],
            a[p1 + j],
            a[p2 + j],
            a[p3 + j],
            a[r0 + j],
            a[r1 + j],
            a[r2 + j],
            a[r3 + j],
            c,
            d,
            e,
        )
        b[i], b[i + ONE], b[i + TWO], b[i + THREE] = w, x, y, z
        b[k], b[k + ONE], b[k + TWO], b[k + THREE] = W, X, Y, Z


@helper()
def whole3(a, p, h, c):
    """One axis of size 3 and stride h over a[p:p+3h], in place."""
    p0, p1, p2 = uint64(p), uint64(p + h), uint64(p + 2 * h)
    for j in range(uint64(h)):
        x, y, z = a[p0 + j], a[p1 + j], a[p2 + j]
        s, t, u = c * (x - y), c * (y - z), c * (z - x)
        a[p0 + j] = x + (u - s)
        a[p1 + j] = y + (s - t)
        a[p2 + j] = z + (t - u)


@helper()
def whole4(a, p, h, c):
    """One axis of size 4 and stride h over a[p:p+4h], in place (4w is exact)."""
    p0, p1, p2, p3 = uint64(p), uint64(p + h), uint64(p + 2 * h), uint64(p + 3 * h)
    for j in range(uint64(h)):
        w, x, y, z = a[p0 + j], a[p1 + j], a[p2 + j], a[p3 + j]
        s = (w + x) + (y + z)
        a[p0 + j] = w + c * (s - 4.0 * w)
        a[p1 + j] = x + c * (s - 4.0 * x)
        a[p2 + j] = y + c * (s - 4.0 * y)
        a[p3 + j] = z + c * (s - 4.0 * z)


@helper()
def general(a, p, h, m, c, mean):
    """One axis of any size m and stride h over a[p:p+m*h], in place.

    The mean is row 0 plus the mean difference from row 0, so that equal rows
    give exactly their common value and stay as they are.  Four rows are summed
    at a time; row 0 stands in for rows beyond the last.
    """
    scale = 1.0 / m
    for left in range(0, h, CHUNK):
        width = uint64(min(CHUNK, h - left))
        r = p + left
        p0 = uint64(r)
        for j in range(width):
            mean[j] = a[p0 + j]
        for k in range(1, m, 4):
            p1 = uint64(r + k * h)
            p2 = uint64(r + (k + 1) * h if k + 1 < m else r)
            p3 = uint64(r + (k + 2) * h if k + 2 < m else r)
            p4 = uint64(r + (k + 3) * h if k + 3 < m else r)
            for j in range(width):
                x = a[p0 + j]
                s = (a[p1 + j] - x) + (a[p2 + j] - x)
                t = (a[p3 + j] - x) + (a[p4 + j] - x)
                mean[j] += (s + t) * scale
        for k in range(m):
            p1 = uint64(r + k * h)
            for j in range(width):
                a[p1 + j] -= c * m * (a[p1 + j] - mean[j])


@helper()
def block(a, p, n, steps, c, mean):
    """All steps on the n contiguous elements a[p:p+n], largest stride first.

    A step (axis, twos, m) is one axis of size m, or `twos` axes of size 2
    with m = 2**twos.  The order is depth first, so that a sub-block is
    finished while it is in the nearest cache.  It also keeps the stride `h`
    unpredictable to LLVM, which around a plain loop over sub-blocks would hoist
    the overlap checks of the vector loops and always fall back to scalar code.
    """
    last = n
    for s in range(len(steps)):
        last //= steps[s, 2]
    last *= steps[len(steps) - 1, 2]
    for offset in range(0, n, last):
        size = n
        for s in range(len(steps)):
            axis, twos, m = steps[s]
            h = size // m
            if offset % size == 0:
                q = p + offset
                if twos == 3:
                    radix8(a, q, h, c[axis], c[axis + 1], c[axis + 2])
                elif twos == 2:
                    radix4(a, q, h, c[axis], c[axis + 1])
                elif twos == 1:
                    radix2(a, q, h, c[axis])
                elif m == 3:
                    whole3(a, q, h, c[axis])
                elif m == 4:
                    whole4(a, q, h, c[axis])
                else:
                    general(a, q, h, m, c[axis], mean)
            size = h


@helper()
def turned(v, p, n, steps, c, tile):
    """Four steps of two or three axes of size 2, all the axes of v[p:p+n].

    Each step moves its axes to the end, so that the next axes are in front,
    at long strides; after four steps the order and the place are the old ones.
    """
    for s in range(4):
        axis, twos = steps[s, 0], steps[s, 1]
        a, i, b, j = (v, p, tile, 0) if s % 2 == 0 else (tile, 0, v, p)
        if twos == 3:
            turn8(a, i, b, j, n // 8, c[axis], c[axis + 1], c[axis + 2])
        else:
            turn4(a, i, b, j, n // 4, c[axis], c[axis + 1])


@helper()
def transposed(v, p, n, steps, c, tile, mean, rows):
    """All steps on each of the `rows` vectors of n elements from v[p] on.

    They are transposed into the tile, where the inner loop is over the rows.
    """
    for j in range(n):
        for i in range(rows):
            tile[uint64(j * rows + i)] = v[uint64(p + i * n + j)]
    block(tile, 0, n * rows, steps, c, mean)
    for i in range(rows):
        for j in range(n):
            v[uint64(p + i * n + j)] = tile[uint64(j * rows + i)]


@kernel(small=True)
def contiguous(
    v: Vector,
    c: Vector,
    steps: IntMatrix,
    high: int,
    length: int,
    tail: int,
    group: int,
    start: int,
    end: int,
) -> None:
    """Every step on the contiguous blocks start..end-1 of `length` elements.

    The first `high` steps are done in place.  The others have small strides
    and span `tail` elements: they are done by `turned`, or if group > 0 by
    `transposed`, `group` tails at a time.  Without steps in place the last
    block may be shorter than the others.
    """
    reach = tail * max(group, 1)
    mean = np.empty(CHUNK)
    tile = np.empty(reach)
    for p in range(start * length, end * length, length):
        if high > 0:
            block(v, p, length, steps[:high], c, mean)
        if high < len(steps):
            stop = min(p + length, len(v))
            for q in range(p, stop, reach):
                if group == 0:
                    turned(v, q, tail, steps[high:], c, tile)
                else:
                    rows = min(reach, stop - q) // tail
                    transposed(v, q, tail, steps[high:], c, tile, mean, rows)


@kernel()
def strided(
    v: Vector, c: Vector, steps: IntMatrix, rows: int, stride: int, cols: int, start: int, end: int
) -> None:
    """Every step on the panels start..end-1 of the matrices (rows, stride).

    A panel is `cols` adjacent columns of one such matrix, copied into a
    contiguous buffer: rows at a power-of-two distance would share cache sets.
    """
    mean = np.empty(CHUNK)
    panel = np.empty(rows * cols)
    across = (stride + cols - 1) // cols
    for b in range(start, end):
        left = b % across * cols
        w = min(cols, stride - left)
        p = b // across * rows * stride + left
        for r in range(rows):
            s, d = uint64(p + r * stride), uint64(r * w)
            for j in range(uint64(w)):
                panel[d + j] = v[s + j]
        block(panel, 0, rows * w, steps, c, mean)
        for r in range(rows):
            s, d = uint64(p + r * stride), uint64(r * w)
            for j in range(uint64(w)):
                v[s + j] = panel[d + j]
