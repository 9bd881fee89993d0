"""Fused vector steps of conjugate gradients on (S A S + Z) t = r, each over entries [start, stop).

The vectors are as long as the space of databases: every pass saved over memory counts.
"""

from .declare import Ints, Vector, kernel


@kernel()
def multiply(a: Vector, b: Vector, out: Vector, start: int, stop: int) -> None:
    """Set out = a b."""
    for j in range(start, stop):
        out[j] = a[j] * b[j]


@kernel(fastmath={"contract", "reassoc"})
def finish_product(
    out: Vector, scale: Vector, shift: Vector, t: Vector, start: int, stop: int
) -> float:
    """Set out = scale out + shift t, and return the sum of t out."""
    total = 0.0
    for j in range(start, stop):
        value = scale[j] * out[j] + shift[j] * t[j]
        out[j] = value
        total += t[j] * value
    return total


@kernel(fastmath={"contract", "reassoc"})
def descend(
    t: Vector,
    r: Vector,
    direction: Vector,
    product: Vector,
    inverse: Vector,
    step: float,
    start: int,
    stop: int,
) -> float:
    """Move t along the direction and the residual r with it; return the sum of inverse r^2."""
    total = 0.0
    for j in range(start, stop):
        t[j] += step * direction[j]
        left = r[j] - step * product[j]
        r[j] = left
        total += inverse[j] * left * left
    return total


@kernel(fastmath={"contract"})
def turn(direction: Vector, r: Vector, inverse: Vector, keep: float, start: int, stop: int) -> None:
    """Set direction = inverse r + keep direction."""
    for j in range(start, stop):
        direction[j] = inverse[j] * r[j] + keep * direction[j]


@kernel()
def add_line_sums(
    v: Vector,
    out: Vector,
    weights: Vector,
    strides: Ints,
    sizes: Ints,
    block: int,
    start: int,
    stop: int,
) -> None:
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
