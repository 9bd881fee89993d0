"""Sums over quadrature points of a distribution of losses, and cells of Gaussian mixtures."""

import math

from .declare import Matrix, Vector, helper, kernel

#: Coefficients 1/n! of e^z - 1 - z, n = 2, 3, ...
_SERIES = tuple(1.0 / math.factorial(n) for n in range(2, 21))
#: Widths of cells, relative to the distance over which a density changes, up to which a rule of
#: three, or of eight points, is exact to rounding (docs/theory/contour.md, "One loss decides").
_NARROW = 2.0**-8
_WIDE = 0.5


@helper()
def _second(x, y, size):
    """Return real and imaginary part of e^z - 1 - z for z = x + iy, size = |z| < 1.

    The terms left out are below 2^-55 of the first.
    """
    last = 18 if size > 0.3 else (11 if size > 0.05 else 7)
    real, turn = _SERIES[last], 0.0
    for n in range(last - 1, -1, -1):
        real, turn = real * x - turn * y + _SERIES[n], real * y + turn * x
    square, twice = x * x - y * y, 2.0 * x * y
    return real * square - turn * twice, real * twice + turn * square


@kernel()
def excess_sums(
    losses: Vector,
    weights: Vector,
    grown: Vector,
    plain: Vector,
    c: float,
    angles: Vector,
    out: Matrix,
) -> None:
    """Sum weights times e^(wL) - 1 - w (e^L - 1), w = c + i angle, to the second order in L.

    ``grown`` is e^(cL) and ``plain`` is e^L - 1 - L. ``out`` has the real parts, then the imaginary
    parts. Sums are compensated.
    """
    for k in range(angles.size):
        v = angles[k]
        length = math.hypot(c, v)
        real = turn = lost_real = lost_turn = 0.0
        for i in range(losses.size):
            x, y = c * losses[i], v * losses[i]
            size = length * abs(losses[i])
            if size < 1.0:
                a, b = _second(x, y, size)
            else:
                a, b = grown[i] * math.cos(y) - 1.0 - x, grown[i] * math.sin(y) - y
            term = weights[i] * (a - c * plain[i]) - lost_real
            total = real + term
            lost_real = (total - real) - term
            real = total
            term = weights[i] * (b - v * plain[i]) - lost_turn
            total = turn + term
            lost_turn = (total - turn) - term
            turn = total
        out[0, k] = real
        out[1, k] = turn


@kernel()
def turned_sums(losses: Vector, weights: Vector, angles: Vector, out: Matrix) -> None:
    """Sum weights times e^(i angle L); real parts, then imaginary parts. Sums are compensated."""
    for k in range(angles.size):
        v = angles[k]
        real = turn = lost_real = lost_turn = 0.0
        for i in range(losses.size):
            y = v * losses[i]
            term = weights[i] * math.cos(y) - lost_real
            total = real + term
            lost_real = (total - real) - term
            real = total
            term = weights[i] * math.sin(y) - lost_turn
            total = turn + term
            lost_turn = (total - turn) - term
            turn = total
        out[0, k] = real
        out[1, k] = turn


@kernel()
def half_erfc(at: Vector, out: Vector) -> None:
    """Write erfc(at) / 2."""
    for i in range(at.size):
        out[i] = 0.5 * math.erfc(at[i])


@helper()
def _between(x, y):
    """Return the normal probability of an interval, x < y, from the tail on its side."""
    root = math.sqrt(0.5)
    if x > 0.0:
        return 0.5 * (math.erfc(x * root) - math.erfc(y * root))
    if y < 0.0:
        return 0.5 * (math.erfc(-y * root) - math.erfc(-x * root))
    return 0.5 * (math.erf(y * root) - math.erf(x * root))


@kernel()
def sampled_cells(
    edges: Vector, shift: float, q: float, rules: Matrix, p: Vector, base: Vector
) -> None:
    """Probabilities of cells of outputs under (1-q) N(0, 1) + q N(shift, 1) and under N(0, 1).

    ``edges`` are rising outputs, the first may be -inf. ``rules`` has the points and weights of
    Gauss-Legendre rules on [-1, 1] of three points, then of eight.
    """
    scale = 1.0 / math.sqrt(2.0 * math.pi)
    for i in range(p.size):
        x, y = edges[i], edges[i + 1]
        if not x < y:
            p[i] = base[i] = 0.0
            continue
        width = (y - x) * (1.0 + max(abs(x), abs(y)) + shift)
        if not width <= _WIDE:
            base[i] = _between(x, y)
            p[i] = (1.0 - q) * base[i] + q * _between(x - shift, y - shift)
            continue
        first, count = (0, 3) if width <= _NARROW else (3, 8)
        half, middle = 0.5 * (y - x), 0.5 * (x + y)
        total = moved = 0.0
        for j in range(first, first + count):
            at = middle + half * rules[0, j]
            density = rules[1, j] * math.exp(-0.5 * at * at)
            total += density
            moved += density * math.exp(shift * (at - 0.5 * shift))
        base[i] = scale * half * total
        p[i] = scale * half * ((1.0 - q) * total + q * moved)


@helper()
def _log_mixture(x, shifts, chances, rest):
    """Return ln(rest + sum of p e^(cx - c^2/2)), from the excess over one where it is small."""
    most = 0.0
    excess = 0.0
    for i in range(shifts.size):
        u = shifts[i] * (x - 0.5 * shifts[i])
        most = max(most, u)
        if u < 600.0:
            excess += chances[i] * math.expm1(u)
    if most < 600.0:
        return math.log1p(max(excess, rest - 1.0)) if excess > -1.0 else math.log(1e-300)
    total = 0.0
    for i in range(shifts.size):
        total += chances[i] * math.exp(shifts[i] * (x - 0.5 * shifts[i]) - most)
    return most + math.log(total)


@kernel()
def mixture_cumulant(
    c: float,
    low: float,
    h: float,
    up: Matrix,
    up_rest: float,
    down: Matrix,
    down_rest: float,
    half_last: bool,
    work: Matrix,
    out: Vector,
) -> None:
    """Write ln Phi(c) and its first two derivatives, by a trapezoidal rule from ``low`` in steps h.

    ``up`` and ``down`` have shifts and then their probabilities; ``work`` has as many columns as
    there are points. If ``half_last``, the integrand ends at the last point.
    """
    most = -math.inf
    count = work.shape[1]
    scale = math.log(h) - 0.5 * math.log(2.0 * math.pi)
    for i in range(count):
        x = low + i * h
        first = _log_mixture(x, up[0], up[1], up_rest)
        second = _log_mixture(-x, down[0], down[1], down_rest)
        log = scale - 0.5 * x * x + second
        if half_last and i == count - 1:
            log -= math.log(2.0)
        work[0, i] = first - second
        work[1, i] = log
        most = max(most, log + c * work[0, i])
    total = mean = excess = p = q = 0.0
    for i in range(count):
        loss = work[0, i]
        mass = math.exp(work[1, i] + c * loss - most)
        total += mass
        mean += mass * loss
        work[2, i] = mass
    mean /= total
    variance = 0.0
    for i in range(count):
        variance += work[2, i] * (work[0, i] - mean) ** 2
    out[1] = mean
    out[2] = variance / total
    out[0] = most + math.log(total)
    if most <= 1.0:  # as the excess over one, which may be small
        for i in range(count):
            loss = work[0, i]
            mass = math.exp(work[1, i])
            x = c * loss
            a = _second(x, 0.0, abs(x))[0] if abs(x) < 1.0 else math.exp(x) - 1.0 - x
            b = _second(loss, 0.0, abs(loss))[0] if abs(loss) < 1.0 else math.exp(loss) - 1.0 - loss
            excess += mass * (a - c * b)
            if half_last:
                q += mass
                p += mass * math.exp(loss)
        if half_last:
            excess += c * (p - 1.0) + (1.0 - c) * (q - 1.0)
        if excess > -1.0:
            out[0] = math.log1p(excess)


@kernel()
def lifted_falls(
    angles: Vector, octave: int, turns: Matrix, masses: Vector, logs: Vector, out: Matrix
) -> None:
    """Add e^log times the sum of masses e^(-angle turn) to ``out``, for every line and angle.

    The angle number i + octave is twice the angle number i, so that its exponentials are squares:
    they are good to 2^-20, for at most 32 octaves.
    """
    for line in range(turns.shape[0]):
        factor = math.exp(logs[line])
        for i in range(turns.shape[1]):
            value = factor * masses[i]
            for j in range(min(octave, angles.size)):
                fall = math.exp(-angles[j] * turns[line, i])
                for k in range(j, angles.size, octave):
                    out[line, k] += value * fall
                    fall *= fall
                    if fall < 1e-300:
                        break
