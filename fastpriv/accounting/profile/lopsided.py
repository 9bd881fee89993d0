"""Samples for finite releases: measures for each order of the neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fastpriv._core.rounding import ULP, directed
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.measures import FINE, Longs, Measure


class Lopsided:
    """A release of which a person takes part with probability q.

    With the person, outputs have the law (1 - q) Q + q P, without it Q, where (P, Q) is the pair of
    the release itself. A loss l becomes ln(1 - q + q e^l), or minus that in the other order.
    """

    def __init__(self, atom: Atom, q: float) -> None:
        self.atom, self.q = atom, q
        self.key: tuple[Any, ...] = ("sampled", q, *atom.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Lopsided)
            and type(other) is type(self)
            and self.q == other.q
            and self.atom == other.atom
        )

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the neighbours have the same measures."""
        return False

    @property
    def attained(self) -> bool:
        """Whether any pair of neighbours attains it, whatever else is released."""
        return self.atom.free

    @property
    def exact(self) -> bool:
        """Whether the bounds from above and below are the same measure, which is attained."""
        return self.atom.free and self.atom.lower is self.atom.upper

    def measure(self, flipped: bool, up: bool) -> Measure:
        """Measure of one order, from above or below."""
        given = self.atom.upper if up else self.atom.lower
        q = np.longdouble(self.q)
        plain = given.losses.astype(np.longdouble) + np.longdouble(given.shift)
        losses = np.log1p(q * np.expm1(plain)) if self.q < 1.0 else plain
        with np.errstate(divide="ignore"):
            low = np.log1p(-q)  # the loss where the person's own law puts nothing
            hidden = np.log(np.longdouble(given.infinite)) if given.infinite > 0.0 else -np.inf
        logs = given.logs - plain
        if flipped:
            losses, logs, infinite = -losses, logs, 0.0
            losses, logs = np.append(losses, -low), np.append(logs, hidden)
        else:
            logs = logs + losses
            infinite = directed(given.infinite * self.q, 4.0, up)
            losses, logs = np.append(losses, low), np.append(logs, hidden + low)
        seen = logs > -np.inf
        losses, logs = losses[seen], logs[seen]
        order = np.argsort(losses, kind="stable")
        losses, logs = losses[order], logs[order]
        size = float(np.abs(losses).max(initial=0.0))
        off = 2.0 * given.off + (16.0 * FINE + ULP) * size + 16.0 * FINE
        error = 2.0 * given.error + (32.0 + 8.0 * float(np.abs(logs).max(initial=0.0))) * FINE
        shift = losses[0] if len(losses) else np.longdouble(0.0)
        rising, logs, moved = _joined((losses - shift).astype(np.float64), logs)
        return Measure(rising, logs, infinite, error, 0.0, float(shift), off + moved)

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return self.q == 0.0 or self.atom.is_trivial


def _joined(losses: Floats, logs: Longs) -> tuple[Floats, Longs, float]:
    """Join losses that sampling has made the same but for rounding, and say by how much."""
    if not len(losses):
        return losses, logs, 0.0
    starts = np.flatnonzero(np.diff(losses, prepend=-1.0) > 4.0 * ULP * losses[-1])
    last = np.append(starts[1:], len(losses)) - 1
    most = np.maximum.reduceat(logs, starts)
    sizes = np.diff(np.append(starts, len(losses)))
    total = np.add.reduceat(np.exp(logs - np.repeat(most, sizes)), starts)
    moved = float((losses[last] - losses[starts]).max())
    return losses[last], most + np.log(total), moved


class WithoutReplacement(Lopsided):
    """A release of a sample of fixed size, in which a person is with probability q.

    Where the person is replaced, both orders of the neighbours have the same curve from above,
    q delta(ln(1 + (e^t - 1)/q)) for t >= 0: losses l > 0 become ln(1 - q + q e^l), with their
    mirror images. What is attained is (1 - q) Q + q P against Q, in both orders, with the pair
    (P, Q) of ``reached``.
    """

    def __init__(self, atom: Atom, q: float, reached: Atom | None) -> None:
        super().__init__(atom, q)
        self.reached = reached
        other = None if reached is None else reached.key
        self.key = ("without-replacement", q, atom.key, other)

    @property
    def attained(self) -> bool:
        """Whether something is attained, whatever else is released."""
        return self.reached is not None

    def measure(self, flipped: bool, up: bool) -> Measure:
        """Measure of one order, from above or below."""
        if not up:
            if self.reached is not None:
                return Lopsided(self.reached, self.q).measure(flipped, False)
            return Measure(np.zeros(1), np.zeros(1, dtype=np.longdouble), 0.0, 0.0)
        given = super().measure(False, True)
        losses = given.losses.astype(np.longdouble) + np.longdouble(given.shift)
        seen = losses > 0.0
        result = Measure.symmetric(losses[seen], given.logs[seen], given.infinite, True, 0.0)
        return replace(result, error=result.error + given.error, off=given.off)


class Levelwise(Lopsided):
    """A release whose curve is computed level by level.

    ``delta`` and ``epsilon`` bound one release better than its measures do, which are made of some
    points of the curve, for compositions.
    """

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.key == getattr(other, "key", None)

    @property
    def attained(self) -> bool:
        """Whether neighbours attain the lower measure."""
        return True

    @property
    def asked_of(self) -> tuple[Any, ...] | None:
        """Which neighbours attain the lower measure; None where any do."""
        return None

    @property
    def exact(self) -> bool:
        """No: the curve is known between two bounds."""
        return False

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return False

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t) of one release."""
        raise NotImplementedError

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the least level of one release at a delta."""
        raise NotImplementedError


def show_all() -> Atom:
    """A release of its input."""
    return Atom.response(2, 0.0, 1.0)


def discrete_gaussian(sigma: float, sensitivity: int) -> Atom:
    """Discrete Gaussian noise on two integers at a distance: losses d (2x - d) / (2 sigma^2).

    Under the first law x - d has mass e^(-(x-d)^2/(2 sigma^2)) / Z. Losses are multiples of
    d/(2 sigma^2), all of them odd or all even ones. What is beyond 39 sigma counts as infinite.
    """
    d = sensitivity
    reach = math.ceil(39.0 * sigma) + 2
    n = np.arange(-reach, reach + 1)
    step = d / (2.0 * sigma * sigma)
    fine = np.longdouble(d) / (2.0 * np.longdouble(sigma) ** 2)
    logs = -(n.astype(np.longdouble) ** 2) / (2.0 * np.longdouble(sigma) ** 2)
    logs -= np.log(np.exp(logs).sum())
    multiples = 2 * n + d
    # Masses of losses and their mirror images: symmetric but for the cut, which goes to infinity.
    keep = multiples > 0
    positive, masses = multiples[keep] * np.longdouble(step), logs[keep]
    size = float(np.abs(masses).max())
    error = (32.0 + 8.0 * size) * FINE + float(abs(fine - step) / fine) * 2.0 * size
    infinite = 1e-320
    mirrored = masses - positive
    losses = np.concatenate([-positive[::-1], positive])
    both = np.concatenate([mirrored[::-1], masses])
    if 0 in multiples:
        middle = logs[multiples == 0]
        losses = np.concatenate([-positive[::-1], np.zeros(1, dtype=np.longdouble), positive])
        both = np.concatenate([mirrored[::-1], middle, masses])
    # The step is a double; near an atom delta depends on how far the true loss is from it.
    off = (float(abs(fine - step)) + 4.0 * FINE * step) * float(np.abs(multiples).max())
    upper = Measure(losses.astype(np.float64), both, infinite, error, step, off=off)
    lower = Measure(losses.astype(np.float64), both, 0.0, error, step, off=off)
    return Atom(lower, upper, ("discrete-gaussian", sigma, sensitivity))


def discrete_laplace(parameter: float, sensitivity: int) -> Atom:
    """Discrete Laplace noise e^(-a|x|) tanh(a/2) on two integers at distance d.

    Losses are a (|x| - |x - d|): a d, and -a d, in the tails, and a (2x - d) between.
    """
    a, d = np.longdouble(parameter), sensitivity
    x = np.arange(1, d)  # strictly between
    tail = -np.log1p(np.exp(-a))  # ln of the mass of x >= d under the law around d
    inner = np.log(np.tanh(a / 2.0)) - a * np.abs(x - d)
    multiples = np.concatenate([[-d], 2 * x - d, [d]])
    logs = np.concatenate([[tail - a * d], inner, [tail]])
    losses = multiples * float(parameter)
    size = float(np.abs(logs).max())
    top = float(losses[-1])
    off = 0.0 if Fraction(top) == d * Fraction(float(parameter)) else ULP * top
    measure = Measure(losses, logs, 0.0, (32.0 + 8.0 * size) * FINE, float(parameter), off=off)
    return Atom(measure, measure, ("discrete-laplace", parameter, sensitivity))
