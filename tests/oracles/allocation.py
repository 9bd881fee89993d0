"""Plain references for random allocation: integrals over outputs, in mpmath and on grids."""

import numpy as np
from mpmath import erfc, exp, log, mpf, quad, sqrt, workdps
from scipy.special import ndtr


def call(sigma, strike):
    """E (Y - strike)_+ for Y = e^((2x-1)/(2 sigma^2)), x ~ N(0, sigma^2), whose mean is one."""
    if strike <= 0:
        return 1 - strike
    s = 1 / mpf(sigma)
    d = -log(strike) / s + s / 2
    return erfc(-d / sqrt(mpf(2))) / 2 - strike * erfc(-(d - s) / sqrt(mpf(2))) / 2


def removed_delta(sigma, t, epsilon):
    """delta of one epoch, E_Q (mean Y - e^epsilon)_+, by t - 1 nested integrals."""
    with workdps(20):
        sigma, level = mpf(sigma), t * exp(mpf(epsilon))

        def density(z):
            return exp(-z * z / 2) / sqrt(2 * mpf("3.14159265358979323846264338327950288"))

        def value(z):
            return exp((2 * sigma * z - 1) / (2 * sigma**2))

        def expected(rest, strike):
            if rest == 0:
                return call(sigma, strike)
            kink = sigma * log(strike) + 1 / (2 * sigma) if strike > 0 else mpf(0)
            # Ratios are likely around 0, and their contributions to the mean around 1/sigma.
            last = 12 + 1 / sigma
            ends = sorted({mpf(-9), min(max(kink, mpf(-9)), last), 1 / sigma, last})
            return quad(lambda z: density(z) * expected(rest - 1, strike - value(z)), ends)

        return expected(t - 1, level) / t


def added_delta(sigma, t, epsilon):
    """delta of the other order: E_Q (1 - e^epsilon mean Y)_+ = e^epsilon G(e^-epsilon)."""
    a = exp(-mpf(epsilon))
    return (removed_delta(sigma, t, -epsilon) + a - 1) / a


def removed_delta_of_three(sigma, epsilon, points=600):
    """The same for three batches, the last one in closed form and two on a grid."""
    z, h = np.linspace(-9.0, 9.0, points, retstep=True)
    weight = np.exp(-(z**2) / 2) * h / np.sqrt(2 * np.pi)
    ratio = np.exp((2 * sigma * z - 1) / (2 * sigma**2))
    strike = 3 * np.exp(epsilon) - ratio[:, None] - ratio[None, :]
    d = -sigma * np.log(np.maximum(strike, 1e-300)) + 1 / (2 * sigma)
    value = np.where(strike > 0, ndtr(d) - strike * ndtr(d - 1 / sigma), 1 - strike)
    return float(weight @ value @ weight) / 3


def two_epochs(sigma, epsilon, points=500):
    """delta of two epochs of two batches, the person removed, by sums over a grid of outputs."""
    x, h = np.linspace(-8.0 * sigma, 8.0 * sigma + 1.0, points, retstep=True)
    weight = np.exp(-(x**2) / (2 * sigma**2)) * h / (sigma * np.sqrt(2 * np.pi))
    ratio = np.exp((2 * x - 1) / (2 * sigma**2))
    mean = (ratio[:, None] + ratio[None, :]) / 2
    loss = np.log(mean).ravel()
    mass = (np.outer(weight, weight) * mean).ravel()
    order = np.argsort(loss)
    loss, mass = loss[order], mass[order]
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    test = np.append(np.cumsum((mass * np.exp(-loss))[::-1])[::-1], 0.0)
    left = epsilon - loss
    first = np.searchsorted(loss, left, side="right")
    return float((mass * (above[first] - np.exp(left) * test[first])).sum())


def removed_delta_two_of_three(sigma, epsilon, points=500):
    """E_Q (e_2(Y) / 3 - e^epsilon)_+ with e_2 = Y1 Y2 + Y3 (Y1 + Y2), which is linear in Y3."""
    z, h = np.linspace(-9.0, 9.0 + 1.0 / sigma, points, retstep=True)
    weight = np.exp(-(z**2) / 2) * h / np.sqrt(2 * np.pi)
    y = np.exp((2 * sigma * z - 1) / (2 * sigma**2))
    total, product = y[:, None] + y[None, :], y[:, None] * y[None, :]
    strike = (3 * np.exp(epsilon) - product) / total
    d = -sigma * np.log(np.maximum(strike, 1e-300)) + 1 / (2 * sigma)
    value = np.where(strike > 0, ndtr(d) - strike * ndtr(d - 1 / sigma), 1 - strike)
    return float(weight @ (value * total) @ weight) / 3


def laplace_one_of_two(scale, epsilon):
    """E_Q ((Y1 + Y2) / 2 - e^epsilon)_+ for Laplace noise, one integral and a closed form."""
    with workdps(20):
        e = 1 / mpf(scale)

        def expected(strike):
            if strike <= exp(-e):
                return 1 - strike
            return mpf(0) if strike >= exp(e) else 1 - exp((log(strike) - e) / 2)

        level = 2 * exp(mpf(epsilon))
        ends = expected(level - exp(-e)) / 2 + expected(level - exp(e)) * exp(-e) / 2
        kinks = sorted(
            {-e, e, *(min(max(log(s), -e), e) for s in (level - exp(-e), level - exp(e)) if s > 0)}
        )
        inner = quad(lambda x: exp(-(x + e) / 2) / 4 * expected(level - exp(x)), kinks)
        return (ends + inner) / 2


def enumerated(laws, t, k, epsilon):
    """delta of both orders where a batch shows a finite output: sums over all outputs.

    ``laws`` are the distributions of one batch with one record, with the other, and without.
    """
    from itertools import combinations, product

    one, other, none = laws
    outputs = list(product(range(len(none)), repeat=t))
    sets = list(combinations(range(t), k))
    total = [0.0, 0.0]
    for output in outputs:
        p, q = (
            sum(
                np.prod([law[y] if i in chosen else none[y] for i, y in enumerate(output)])
                for chosen in sets
            )
            / len(sets)
            for law in (one, other)
        )
        total[0] += max(p - np.exp(epsilon) * q, 0.0)
        total[1] += max(q - np.exp(epsilon) * p, 0.0)
    return max(total)
