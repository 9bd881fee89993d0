"""An interior-point method for the least I(S; Y) under a distortion budget.

For V[y, x] = P(y, x) and posteriors r_y = r(.|y) of S, in logarithms eta = ln(r/P(s)), the program
and its dual are

    min  I(S; Y)            V >= 0,  sum_y V[y, x] = p(x),  <d, V> <= D,
    max  sum_x p(x) mu(x) - lambda D,
         mu(x) <= sum_s P(s|x) eta(s, y) + lambda d(x, y),   sum_s P(s) e^eta(s, y) <= 1.

The dual is Gibbs' inequality: I(S; Y) >= sum P(s, y) ln(r(s|y)/P(s)) for any posteriors r. So every
eta, scaled to sum to one, is a certificate. Keeping eta as an unknown of its own is what makes
the method converge: read off V instead, the posterior of an output that dies is a ratio of two
vanishing numbers and jumps from step to step.

A Newton step solves an |X| x |X| system for every output, a diagonal plus a matrix of rank |S|; the
|X| row sums and the budget couple them (kernels/mapping.py).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats

_STEPS = 200
#: Operations worth a thread of their own.
_GRAIN = 1 << 20
_STEP = 0.98
#: First complementarity, as a part of I(S; X) per entry; the second where the first one stalls.
_FIRST = (0.3, 0.03)
#: A gap in nats that is not worth a second start.
_SMALL = 1e-10
#: Steps in which the gap must shrink by a tenth, or rounding has won.
_PATIENCE = 40
#: Information that is nothing but rounding.
_NOTHING = 1e-24


@dataclass
class Program:
    """Least I(S; Y) for laws of full support, distortions counted from the least of each row."""

    kernel: Floats  # P(s|x), an |S| x |X| array
    inputs: Floats  # p(x) > 0
    secrets: Floats  # P(s) > 0
    cost: Floats  # d[y, x] >= 0
    allowed: Floats  # 1.0 where output y may follow x, else 0.0
    budget: tuple[float, float]  # D, rounded down for mechanisms and up for bounds

    @cached_property
    def centred(self) -> Floats:
        """P(s|x) - P(s): what keeps the digits of a small information."""
        return self.kernel - self.secrets[:, None]

    @cached_property
    def least(self) -> Floats:
        """The joint law of x with its outputs of no distortion, all alike."""
        free = self.allowed * (self.cost == 0.0)
        return np.asarray(free * (self.inputs / free.sum(axis=0)))

    @cached_property
    def most(self) -> Floats:
        """Largest ln(r/P(s)), of a posterior that is certain."""
        return np.asarray(-np.log(self.secrets))

    def start(self) -> Floats:
        """Return a joint law inside the budget: weights 1/(1 + b d) on the outputs of every row."""
        target = 0.5 * self.budget[0]
        low, high = 1.0, 1.0
        while self._distortion(self._spread(high)) > target:
            low, high = high, 8.0 * high
        for _ in range(3 if high > 1.0 else 0):
            middle = math.sqrt(low * high)
            inside = self._distortion(self._spread(middle)) <= target
            low, high = (low, middle) if inside else (middle, high)
        return self._spread(high)

    def _spread(self, b: float) -> Floats:
        weights = self.allowed / (1.0 + b * self.cost)
        return np.asarray(weights * (self.inputs / weights.sum(axis=0)))

    def _distortion(self, V: Floats) -> float:
        return float(np.vdot(V, self.cost))

    def repaired(self, V: Floats) -> Floats:
        """Return V mixed with the mechanism of least distortion until it meets the budget."""
        most = self.budget[0]
        spent = raised(self._distortion(V), V.size)
        if spent <= most:
            return V
        share = min(1.0, (spent - most) / spent * (1.0 + 1e-9) + 4.0 * ULP)
        return np.asarray((1.0 - share) * V + share * self.least)

    def excess(self, V: Floats) -> tuple[Floats, Floats]:
        """Return q(y) and P(s|y)/P(s) - 1 for every output."""
        q = V.sum(axis=1)
        return q, (V @ self.centred.T) / q[:, None] / self.secrets

    def information(self, V: Floats) -> float:
        """I(S; Y) as a sum of P(s) q(y) f(d) with f(d) = (1+d) ln(1+d) - d."""
        q, d = self.excess(V)
        d = np.maximum(d, -1.0 + ULP)
        return float(q @ (((1.0 + d) * np.log1p(d) - d) @ self.secrets))

    def normalised(self, eta: Floats) -> tuple[Floats, Floats]:
        """Shift ln(r/P(s)) so that every r sums to one; also the size of the terms it summed."""
        eta = np.minimum(eta, self.most)
        excess = np.expm1(eta)
        total = excess @ self.secrets
        return eta - np.log1p(total)[:, None], np.abs(excess) @ self.secrets / (1.0 + total)

    def bound(self, eta: Floats, scale: Floats, slope: float, prices: Floats) -> float:
        """Lower bound on I(S; Y) proved by normalised log posteriors, rounded down.

        ``prices`` is eta @ kernel + slope * cost. What its sums, the normalisation of every
        output (by terms of total size ``scale``) and the budget lost to rounding is taken off.
        """
        lost = (2 * len(self.secrets) + 16) * ULP
        size = np.abs(eta) @ self.kernel + slope * self.cost + scale[:, None]
        floor = np.where(self.allowed > 0.0, prices - lost * size, np.inf).min(axis=0)
        total = math.fsum(self.inputs * floor)
        spare = (len(self.secrets) + 8) * ULP * math.fsum(self.inputs * np.abs(floor))
        return total - spare - raised(slope * self.budget[1], 4.0)


def solve_mapping(program: Program, gap: float, deadline: float) -> tuple[Floats, float]:
    """Return a joint law V[y, x] within the budget and a lower bound on the least I(S; Y)."""
    best, value, bound = _from(program, _FIRST[0], gap, deadline)
    if value - bound > max(gap * value, _SMALL) and time.monotonic() < deadline:
        other, again, other_bound = _from(program, _FIRST[1], gap, deadline)
        best, bound = other if again < value else best, max(bound, other_bound)
    return best, bound


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def _from(
    program: Program, part: float, gap: float, deadline: float
) -> tuple[Floats, float, float]:
    """Follow the path from one start; return the best V, its I(S; Y) and the best bound.

    A step that overflows yields NaNs, which improve on nothing and end the method.
    """
    A, p, d = program.kernel, program.inputs, program.cost
    allowed, count = program.allowed, float(program.allowed.sum()) + 1.0
    most = program.budget[0]
    V = program.start()
    t = most - float(np.vdot(V, d))
    first = part * max(program.information(np.diag(p)), 1e-30) / count
    Z = np.where(allowed > 0.0, first / np.where(allowed > 0.0, V, 1.0), 1.0)
    slope, mu = first / t, np.zeros(len(p))
    eta = np.log1p(np.maximum(program.excess(V)[1], -1.0 + 1e-14))
    best, value, bound, gaps = V, math.inf, 0.0, [math.inf]
    for _ in range(_STEPS):
        eta, scale = program.normalised(eta)
        prices = eta @ A + slope * d
        result = program.repaired(V)
        information = program.information(result)
        if information < value:
            best, value = result, information
        bound = max(bound, program.bound(eta, scale, slope, prices))
        gaps.append(value - bound)
        if gaps[-1] <= max(gap * value, _NOTHING) or time.monotonic() > deadline:
            break
        if len(gaps) > _PATIENCE and gaps[-1] > 0.9 * gaps[-1 - _PATIENCE]:
            break
        dV, dZ, deta, dmu, dslope, dt, length = _direction(program, V, Z, eta, prices, mu, slope, t)
        if not length > 0.0:  # rounding won
            break
        length *= _STEP
        V, Z = V + length * dV, Z + length * dZ
        # A posterior that vanishes falls by the factor that V falls by, not by one in logarithms.
        deta *= length
        eta = eta + np.where(deta < 0.0, np.log1p(np.maximum(deta, -_STEP)), deta)
        mu, slope, t = mu + length * dmu, slope + length * dslope, t + length * dt
        V *= p / V.sum(axis=0)
    return best, value, bound


def _direction(
    program: Program,
    V: Floats,
    Z: Floats,
    eta: Floats,
    prices: Floats,
    mu: Floats,
    slope: float,
    t: float,
) -> tuple[Floats, Floats, Floats, Floats, float, float, float]:
    """Return the Newton step of all unknowns and how far to go."""
    A, (k, n) = program.kernel, program.kernel.shape
    few = 2 * k <= n
    r, e = program.secrets * np.exp(eta), np.sqrt(V / Z)
    j = V.sum(axis=1)[:, None] * r
    K = np.empty((len(V), k if few else n, n))

    def factor(first: int, last: int) -> Floats:
        gram = np.zeros((n, n))
        if not kernels.mapping_factor(A, r, j, e, few, first, last, K, gram):
            gram[:] = math.nan  # the step that follows has length 0
        return gram

    grams = split(factor, len(V), 1 + _GRAIN // (K[0].size * n))
    gram = grams[0] if len(grams) == 1 else np.sum(grams, axis=0)
    return kernels.mapping_direction(
        A, program.inputs, program.cost, program.allowed, program.budget[0], V, Z, r, j, prices,
        mu, slope, t, K, e, few, gram,
    )  # fmt: skip
