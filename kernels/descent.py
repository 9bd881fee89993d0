"""Fused vector steps of conjugate gradients on (S A S + Z) t = r, each over entries [start, stop).

The vectors are as long as the space of databases: every pass saved over memory counts.
"""

from numba import njit


@njit(nogil=True, cache=True)
def multiply(a, b, out, start, stop):
    """Set out = a b."""
    for j in range(start, stop):
        out[j] = a[j] * b[j]


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def finish_product(out, scale, shift, t, start, stop):
    """Set out = scale out + shift t, and return the sum of t out."""
    total = 0.0
    for j in range(start, stop):
        value = scale[j] * out[j] + shift[j] * t[j]
        out[j] = value
        total += t[j] * value
    return total


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def descend(t, r, direction, product, inverse, step, start, stop):
    """Move t along the direction and the residual r with it; return the sum of inverse r^2."""
    total = 0.0
    for j in range(start, stop):
        t[j] += step * direction[j]
        left = r[j] - step * product[j]
        r[j] = left
        total += inverse[j] * left * left
    return total


@njit(nogil=True, cache=True, fastmath={"contract"})
def turn(direction, r, inverse, keep, start, stop):
    """Set direction = inverse r + keep direction."""
    for j in range(start, stop):
        direction[j] = inverse[j] * r[j] + keep * direction[j]


@njit(nogil=True, cache=True)
def add_line_sums(v, out, weights, strides, sizes, block, start, stop):
    """Add weight_i times the sum of v along axis i to out, for every axis, blocks [start, stop).

    A block holds whole lines of all the axes given: stride times size is at most ``block``.
    """
    for k in range(start, stop):
        for axis in range(len(sizes)):
            h, m, weight = strides[axis], sizes[axis], weights[axis]
            for first in range(k * block, (k + 1) * block, h * m):
                if m == 2:
                    for j in range(first, first + h):
                        total = weight * (v[j] + v[j + h])
                        out[j] += total
                        out[j + h] += total
                else:
                    for j in range(first, first + h):
                        total = 0.0
                        for a in range(m):
                            total += v[j + a * h]
                        total *= weight
                        for a in range(m):
                            out[j + a * h] += total


SIGNATURES = {
    "multiply": ["void(f8[::1], f8[::1], f8[::1], i8, i8)"],
    "finish_product": ["f8(f8[::1], f8[::1], f8[::1], f8[::1], i8, i8)"],
    "descend": ["f8(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, i8, i8)"],
    "turn": ["void(f8[::1], f8[::1], f8[::1], f8, i8, i8)"],
    "add_line_sums": ["void(f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], i8, i8, i8)"],
}
