"""Finite geometries over a prime field: points, hyperplanes, and sums over hyperplanes.

Vectors of F_q^t are numbered by their digits in base q, the first digit being the most
significant. A point of the projective geometry PG(t-1, q) is a line through the origin, given by
its vector whose first digit other than 0 is 1. Points are numbered in the order of these vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from fastpriv._core.validation import Floats, Ints


class Geometry:
    """The vectors of F_q^t for a prime q, and the points of PG(t-1, q)."""

    def __init__(self, q: int, t: int) -> None:
        self.q, self.t = q, t
        self.vectors: int = q**t
        self.points = (self.vectors - 1) // (q - 1)

    @cached_property
    def _starts(self) -> Ints:
        """Return the number of the first point with the leading digit of q^j, for j = 0 .. t."""
        return np.array([(self.q**j - 1) // (self.q - 1) for j in range(self.t + 1)])

    @cached_property
    def _powers(self) -> Ints:
        return np.array([self.q**j for j in range(self.t)])

    def digits(self, numbers: Ints) -> Ints:
        """Return the digits of numbered vectors, shape (count, t)."""
        out = np.empty((len(numbers), self.t), dtype=np.int64)
        rest = numbers.astype(np.int64)
        for j in range(self.t - 1, -1, -1):
            rest, out[:, j] = np.divmod(rest, self.q)
        return out

    def numbers(self, digits: Ints) -> Ints:
        """Return the numbers of vectors: the inverse of digits."""
        out = np.zeros(len(digits), dtype=np.int64)
        for j in range(self.t):
            out = out * self.q + digits[:, j]
        return out

    def numbers_of(self, points: Ints) -> Ints:
        """Return the number of the vector of every point, leading digit 1."""
        level = np.searchsorted(self._starts, points, side="right") - 1
        return np.asarray(points + (self._powers - self._starts[:-1])[level])

    def vectors_of(self, points: Ints) -> Ints:
        """Return the digits of the vector of every point."""
        return self.digits(self.numbers_of(points))

    def points_of(self, digits: Ints) -> Ints:
        """Return the number of the point on which each vector lies; no vector may be zero."""
        lead = np.argmax(digits != 0, axis=1)
        first = np.take_along_axis(digits, lead[:, None], axis=1)
        scaled = digits * self._inverse(first) % self.q
        shift = (self._powers - self._starts[:-1])[self.t - 1 - lead]
        return np.asarray(self.numbers(scaled) - shift)

    def _inverse(self, numbers: Ints) -> Ints:
        """Return a^(q-2), which is 1/a by Fermat's theorem."""
        out, base, power = np.ones_like(numbers), numbers % self.q, self.q - 2
        while power:
            if power & 1:
                out = out * base % self.q
            base, power = base * base % self.q, power >> 1
        return out

    def hyperplane_sums(self, values: Floats) -> Floats:
        """Sum a function over every affine hyperplane: out[a, v] = sum of f(x) over <a, x> = v.

        ``values`` is flat over vectors; a runs over points. By the Fourier slice theorem the
        transform of f along the line of a is the transform of v -> out[a, v]. O(q^t t log q).
        """
        from scipy.fft import fftn, ifft

        spectrum = fftn(values.reshape((self.q,) * self.t)).reshape(-1)
        slices = np.empty((self.points, self.q), dtype=np.complex128)
        for c, places in self.conditional_lines():
            slices[:, c] = spectrum[places]
        return np.ascontiguousarray(ifft(slices, axis=1, overwrite_x=True).real)

    def back_projection(self, sums: Floats) -> Floats:
        """Return sum over points a of sums[a, <a, x>], for every vector x: the adjoint."""
        from scipy.fft import fft, ifftn

        slices = fft(sums, axis=1)
        spectrum = np.zeros(self.vectors, dtype=np.complex128)
        for c, places in self.conditional_lines():
            if c:
                spectrum[places] = slices[:, c]
        spectrum[0] = sums.sum()  # all lines meet in the origin
        back = ifftn(spectrum.reshape((self.q,) * self.t), overwrite_x=True).real
        return np.asarray(back.reshape(-1) * (self.vectors / self.q))

    def incidence_sums(self, values: Floats) -> Floats:
        """Sum a function of points over every hyperplane: out[y] = sum of f(x) over <x, y> = 0.

        Points x = (1, x') are the vectors x' of one dimension less, the others a geometry of one
        dimension less. For y = (1, c a) the first are those with <a, x'> = -1/c, a hyperplane
        there; for y = (0, a) those with <a, x'> = 0. O(q^(t-1) t log q).
        """
        if self.t == 1:
            return np.zeros(1)
        below = Geometry(self.q, self.t - 1)
        far, near = values[: below.points], values[below.points :]
        sums, rest = below.hyperplane_sums(near), below.incidence_sums(far)
        out = np.empty(self.points)
        out[: below.points] = sums[:, 0] + rest
        for c, places in below.conditional_lines():
            if c:
                out[below.points + places] = sums[:, -pow(c, -1, self.q) % self.q] + rest
        out[below.points] = far.sum()  # y = (1, 0, ..., 0)
        return out

    def conditional_lines(self) -> Iterator[tuple[int, Ints]]:
        """Yield c and the numbers of the vectors c a for all points a, c = 0 .. q - 1.

        Both halves of the digits are looked up in a table of multiples.
        """
        half = self.q ** (self.t - self.t // 2)
        digits = self.digits(np.arange(half))
        high, low = np.divmod(self.numbers_of(np.arange(self.points)), half)
        for c in range(self.q):
            multiples = self.numbers(c * digits % self.q)
            yield c, multiples[high] * half + multiples[low]


def least_dimension(q: int, size: int) -> int:
    """Return the smallest t with q^t >= size."""
    t, reach = 1, q
    while reach < size:
        t, reach = t + 1, reach * q
    return t


def is_prime(number: int) -> bool:
    """Whether a number below 2^32 is prime, by trial division."""
    return number > 1 and all(number % d for d in range(2, math.isqrt(number) + 1))


def next_prime(number: int) -> int:
    """Return the smallest prime that is at least ``number``."""
    number = max(2, number)
    while not is_prime(number):
        number += 1
    return number


def primes_near(target: float, size: int, most: int) -> list[int]:
    """Return primes about a target among which a field for ``size`` values is chosen.

    Fields beyond ``size`` bring nothing. The smallest fields with q^t >= size are in the list,
    which waste the fewest vectors, and the largest with q^t <= most.
    """
    top = next_prime(size)
    guesses = [target * 2.0 ** (j / 8.0) for j in range(-8, 9)]
    guesses += [size ** (1.0 / t) for t in range(1, 21)]
    primes = {min(top, next_prime(math.floor(min(guess, 2.0 * top)))) for guess in guesses}
    primes |= {min(top, last_prime(math.floor(most ** (1.0 / t)))) for t in range(2, 7)}
    return sorted(primes)


def last_prime(number: int) -> int:
    """Return the largest prime that is at most ``number`` >= 2."""
    while not is_prime(number):
        number -= 1
    return number
