"""Sums over quadrature points of a distribution of losses, and cells of Gaussian mixtures."""

import math

import numpy as np

from .declare import Ints, Matrix, Vector, helper, kernel

#: Coefficients 1/n! of e^z - 1 - z, n = 2, 3, ...
_SERIES = tuple(1.0 / math.factorial(n) for n in range(2, 21))
#: Widths of cells, relative to the distance over which a density changes, up to which a rule of
#: three, or of eight points, is exact to rounding (docs/theory/contour.md, "One loss decides").
_NARROW = 2.0**-8
_WIDE = 0.5
#: Guides of a search: distance from the window of an integrand at which it is left out, in units of
#: noise; the largest angle between terms in the strip of analyticity; digits, as a logarithm.
_REACH = 8.5
_TURN = 0.85 * math.pi
_FAR = 9.0 * math.log(10.0)
#: Number of equally spaced angles that are summed together.
_LANES = 8


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
def moment_terms(
    logs: Vector,
    losses: Vector,
    fuzz: Vector,
    off: Vector,
    c: float,
    unit: float,
    weights: Vector,
    tilted: Vector,
    out: Vector,
) -> None:
    """Write weights and tilted weights, scaled to at most one, and sums that bound their errors.

    With top = max(1, e^(cL), e^L) times the weight, ``out`` has: the logarithm of the scale; the
    errors of the tilted weights; those that grow with the angle; sums of top L^2 and top |L|^3 over
    |cL| <= 1, and of top and top |L| over all others, times errors where they have any; the sum of
    top |L| times the error of the loss; and the largest |L|.
    """
    scale = 0.0
    for i in range(losses.size):
        scale = max(scale, logs[i] + c * losses[i])
    root = math.sqrt(losses.size)
    rel = turned = second = third = plain = first_far = first = most = 0.0
    for i in range(losses.size):
        loss, log = losses[i], logs[i] - scale
        size = abs(loss)
        weights[i] = math.exp(log)
        tilted[i] = math.exp(log + c * loss)
        top = max(tilted[i], math.exp(log + max(loss, 0.0)))
        rel += (fuzz[i] + unit * (16.0 + root + abs(logs[i]))) * tilted[i]
        turned += (16.0 * unit * size + off[i]) * tilted[i]
        error = fuzz[i] + unit * (40.0 + root)
        if abs(c) * size <= 1.0:
            second += top * size * size * error
            third += top * size * size * size
        else:
            plain += top * error
            first_far += top * size
        first += top * size * off[i]
        most = max(most, size)
    out[0] = scale
    out[1] = rel
    out[2] = turned
    out[3] = second
    out[4] = third
    out[5] = plain
    out[6] = first_far
    out[7] = first
    out[8] = most


@helper()
def _excess(x):
    """Return e^x - 1 - x."""
    return _second(x, 0.0, abs(x))[0] if abs(x) < 1.0 else math.exp(x) - 1.0 - x


@helper()
def _spacing(angles):
    """Return the distance of many equally spaced angles, to four units of roundoff, or 0."""
    last = angles.size - 1
    if last < 4 * _LANES:
        return 0.0
    step = (angles[last] - angles[0]) / last
    for k in range(angles.size):
        if not abs(angles[k] - (angles[0] + k * step)) <= 2.0**-51 * abs(angles[k]):
            return 0.0
    return step


@helper()
def _turns(losses, step):
    """Return cosines and sines of loss times 0, step, ...: a table for one block of angles."""
    cosines, sines = np.empty((losses.size, _LANES)), np.empty((losses.size, _LANES))
    for i in range(losses.size):
        for j in range(_LANES):
            cosines[i, j] = math.cos(j * step * losses[i])
            sines[i, j] = math.sin(j * step * losses[i])
    return cosines, sines


@helper()
def _excess_block(losses, weights, grown, plain, c, v, cosines, sines, out):
    """Write the sums of ``excess_sums`` for one block of equally spaced, rising angles v.

    Series run over the block; beyond them e^(iy) is a product of one cosine and sine per loss and
    the table.
    """
    low, high = math.hypot(c, v[0]), math.hypot(c, v[_LANES - 1])
    y, a, b = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    real, turn = np.zeros(_LANES), np.zeros(_LANES)
    lost_real, lost_turn = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(losses.size):
        x, size = c * losses[i], high * abs(losses[i])
        for j in range(_LANES):
            y[j] = v[j] * losses[i]
        if size < 1.0:
            last = 18 if size > 0.3 else (11 if size > 0.05 else 7)
            for j in range(_LANES):
                a[j], b[j] = _SERIES[last], 0.0
            for n in range(last - 1, -1, -1):
                for j in range(_LANES):
                    a[j], b[j] = a[j] * x - b[j] * y[j] + _SERIES[n], a[j] * y[j] + b[j] * x
            for j in range(_LANES):
                square, twice = x * x - y[j] * y[j], 2.0 * x * y[j]
                a[j], b[j] = a[j] * square - b[j] * twice, a[j] * twice + b[j] * square
        elif low * abs(losses[i]) >= 1.0:
            first, second = grown[i] * math.cos(y[0]), grown[i] * math.sin(y[0])
            for j in range(_LANES):
                a[j] = first * cosines[i, j] - second * sines[i, j] - 1.0 - x
                b[j] = second * cosines[i, j] + first * sines[i, j] - y[j]
        else:
            for j in range(_LANES):
                a[j], b[j] = _one_excess(grown[i], x, y[j], math.hypot(c, v[j]) * abs(losses[i]))
        for j in range(_LANES):
            term = weights[i] * (a[j] - c * plain[i]) - lost_real[j]
            total = real[j] + term
            lost_real[j] = (total - real[j]) - term
            real[j] = total
            term = weights[i] * (b[j] - v[j] * plain[i]) - lost_turn[j]
            total = turn[j] + term
            lost_turn[j] = (total - turn[j]) - term
            turn[j] = total
    for j in range(out.shape[1]):
        out[0, j] = real[j]
        out[1, j] = turn[j]


@helper()
def _one_excess(grown, x, y, size):
    """Return real and imaginary part of e^z - 1 - z, z = x + iy, with e^x and |z|."""
    if size < 1.0:
        return _second(x, y, size)
    return grown * math.cos(y) - 1.0 - x, grown * math.sin(y) - y


@kernel()
def excess_sums(losses: Vector, weights: Vector, c: float, angles: Vector, out: Matrix) -> None:
    """Sum weights times e^(wL) - 1 - w (e^L - 1), w = c + i angle, to the second order in L.

    ``out`` has the real parts, then the imaginary parts. Sums are compensated.
    """
    grown, plain = np.empty(losses.size), np.empty(losses.size)
    for i in range(losses.size):
        grown[i] = math.exp(c * losses[i])
        plain[i] = _excess(losses[i])
    start, step = 0, _spacing(angles)
    if step > 0.0:
        cosines, sines = _turns(losses, step)
        start = angles.size // _LANES * _LANES
        for k in range(0, start, _LANES):
            block = angles[k : k + _LANES]
            _excess_block(
                losses, weights, grown, plain, c, block, cosines, sines, out[:, k : k + _LANES]
            )
    for k in range(start, angles.size):
        v = angles[k]
        length = math.hypot(c, v)
        real = turn = lost_real = lost_turn = 0.0
        for i in range(losses.size):
            size = length * abs(losses[i])
            a, b = _one_excess(grown[i], c * losses[i], v * losses[i], size)
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
    start, step = 0, _spacing(angles)
    if step > 0.0:
        cosines, sines = _turns(losses, step)
        start = angles.size // _LANES * _LANES
        for k in range(0, start, _LANES):
            _turned_block(losses, weights, angles[k], cosines, sines, out[:, k : k + _LANES])
    for k in range(start, angles.size):
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


@helper()
def _part_of_turn(multiple, length):
    """Return a multiple of 2 pi / length modulo 2 pi, between -pi and pi."""
    rest = multiple % length
    return 2.0 * math.pi / length * (rest - length if rest > length // 2 else rest)


@kernel()
def wave_sums(at: Ints, weights: Vector, length: int, out: Matrix) -> None:
    """Sum weights times e^(2 pi i m at / length) for m = 0, 1, ...; real, then imaginary parts.

    Every wave is a product of two, each good to a few units. Sums are compensated.
    """
    cosines, sines = np.empty((at.size, _LANES)), np.empty((at.size, _LANES))
    for i in range(at.size):
        for j in range(_LANES):
            turn = _part_of_turn(j * at[i], length)
            cosines[i, j] = math.cos(turn)
            sines[i, j] = math.sin(turn)
    turns = np.empty(at.size)
    block = np.empty((2, _LANES))
    for k in range(0, out.shape[1], _LANES):
        for i in range(at.size):
            turns[i] = _part_of_turn(k * at[i], length)
        _turned_block(turns, weights, 1.0, cosines, sines, block)
        for j in range(min(_LANES, out.shape[1] - k)):
            out[0, k + j] = block[0, j]
            out[1, k + j] = block[1, j]


@helper()
def _turned_block(losses, weights, v, cosines, sines, out):
    """Write the sums of ``turned_sums`` for one block of equally spaced angles from v on."""
    real, turn = np.zeros(_LANES), np.zeros(_LANES)
    lost_real, lost_turn = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(losses.size):
        first = weights[i] * math.cos(v * losses[i])
        second = weights[i] * math.sin(v * losses[i])
        for j in range(_LANES):
            term = first * cosines[i, j] - second * sines[i, j] - lost_real[j]
            total = real[j] + term
            lost_real[j] = (total - real[j]) - term
            real[j] = total
            term = second * cosines[i, j] + first * sines[i, j] - lost_turn[j]
            total = turn[j] + term
            lost_turn[j] = (total - turn[j]) - term
            turn[j] = total
    for j in range(_LANES):
        out[0, j] = real[j]
        out[1, j] = turn[j]


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


@helper()
def _tilted_moments(logs, losses, c, out):
    """Write ln of the sum of e^(log + c loss), and mean and variance of the losses under it."""
    most = -math.inf
    for i in range(losses.size):
        most = max(most, logs[i] + c * losses[i])
    total = mean = square = 0.0
    masses = np.empty(losses.size)
    for i in range(losses.size):
        masses[i] = math.exp(logs[i] + c * losses[i] - most)
        total += masses[i]
        mean += masses[i] * losses[i]
    mean /= total
    for i in range(losses.size):
        square += masses[i] * (losses[i] - mean) ** 2
    out[0], out[1], out[2] = most + math.log(total), mean, square / total
    return most


@kernel()
def tilted_moments(logs: Vector, losses: Vector, c: float, out: Vector) -> None:
    """Write ln of the sum of e^(log + c loss), and mean and variance of the losses under it."""
    _tilted_moments(logs, losses, c, out)


@helper()
def _cumulant(logs, losses, c, extra, out):
    """Write the same for masses under Q, by the excess of the sum over one if it is not large.

    ``extra`` is what the total masses of P and Q add to this excess.
    """
    excess = extra
    if _tilted_moments(logs, losses, c, out) <= 1.0:
        for i in range(losses.size):
            excess += math.exp(logs[i]) * (_excess(c * losses[i]) - c * _excess(losses[i]))
        if -1.0 < excess < math.inf:
            out[0] = math.log1p(excess)


@kernel()
def node_cumulant(logs: Vector, losses: Vector, c: float, extra: float, out: Vector) -> None:
    """Write ln Phi(c) and its first two derivatives for nodes with logarithms of weights under Q.

    ``extra`` is what the total masses of P and Q add to Phi(c).
    """
    _cumulant(logs, losses, c, extra, out)


@helper()
def _mean_shift(x, shifts, chances, rest):
    """Return the mean of the shift given the output x."""
    most = math.log(max(rest, 1e-300))
    for i in range(shifts.size):
        most = max(most, math.log(chances[i]) + shifts[i] * (x - 0.5 * shifts[i]))
    total = rest * math.exp(-most)
    mean = 0.0
    for i in range(shifts.size):
        mass = math.exp(math.log(chances[i]) + shifts[i] * (x - 0.5 * shifts[i]) - most)
        total += mass
        mean += mass * shifts[i]
    return mean / total


@helper()
def _guide_window(c, up, up_rest, down, cut):
    """Return outputs between which ln(phi A^c B^(1-c)) is close to its maximum."""
    a = b = 0.0
    for i in range(up.shape[1]):
        a = max(a, up[0, i])
    for i in range(down.shape[1]):
        b = max(b, down[0, i])
    low = min(c * a, 0.0) + min((c - 1.0) * b, 0.0) - _REACH
    high = max(c * a, 0.0) + max((c - 1.0) * b, 0.0) + _REACH
    if cut < math.inf:
        low, high = min(-_REACH, cut - _REACH), cut
    elif c < 0.0 and b == 0.0:  # the logarithm is concave: its derivative falls
        inner = 0.0
        while inner - low > 0.1:
            middle = 0.5 * (low + inner)
            if -middle + c * _mean_shift(middle, up[0], up[1], up_rest) >= _REACH:
                low = middle
            else:
                inner = middle
    low = min(low, -b - _REACH)
    if cut == math.inf:
        high = max(high, a + _REACH)
    return low, high, a, b


@helper()
def _guide_spacing(c, a, b):
    """Return a spacing of the trapezoidal rule with an error of about 1e-9, from the strip."""
    best = 0.0
    widest = min(_TURN / max(a, b), math.sqrt(2.0 * _FAR) + 1.0)
    for k in range(4):
        d = widest * 0.8 ** (5 * k)
        turned = max(-c, 0.0) * -math.log(math.cos(0.5 * a * d))
        turned += max(c - 1.0, 0.0) * -math.log(math.cos(0.5 * b * d))
        best = max(best, 2.0 * math.pi * d / (_FAR + 2.0 + 0.5 * d * d + turned))
    return best


@kernel()
def mixture_cumulant(
    c: float,
    up: Matrix,
    up_rest: float,
    down: Matrix,
    down_rest: float,
    cut: float,
    points: int,
    out: Vector,
) -> bool:
    """Write ln Phi(c) and its first two derivatives, by a trapezoidal rule of about nine digits.

    ``up`` and ``down`` have shifts and then their probabilities. Outputs beyond ``cut`` are left
    out. Returns False, and writes nothing, if more than ``points`` points are needed.
    """
    low, high, a, b = _guide_window(c, up, up_rest, down, cut)
    h = _guide_spacing(c, a, b)
    if cut < math.inf:
        h = min(h, 0.01)
    if not (high - low) / h < points - 2.0:
        return False
    count = math.ceil((high - low) / h) + 1
    h = (high - low) / (count - 1)
    losses, logs = np.empty(count), np.empty(count)
    scale = math.log(h) - 0.5 * math.log(2.0 * math.pi)
    for i in range(count):
        x = low + i * h
        first = _log_mixture(x, up[0], up[1], up_rest)
        second = _log_mixture(-x, down[0], down[1], down_rest)
        losses[i] = first - second
        logs[i] = scale - 0.5 * x * x + second
    extra = 0.0
    if cut < math.inf:
        logs[count - 1] -= math.log(2.0)
        p = q = 0.0
        for i in range(count):
            q += math.exp(logs[i])
            p += math.exp(logs[i] + losses[i])
        extra = c * (p - 1.0) + (1.0 - c) * (q - 1.0)
    _cumulant(logs, losses, c, extra, out)
    return True


@kernel()
def lowest_lines(a: Vector, b: Vector, angles: Vector, out: Vector) -> None:
    """Write the minimum of one and all a + b / angle."""
    for k in range(angles.size):
        u = 1.0 / angles[k]
        least = 1.0
        for i in range(a.size):
            least = min(least, a[i] + b[i] * u)
        out[k] = least


@kernel()
def turned_total(
    real: Vector, imaginary: Vector, sizes: Vector, errors: Vector, angles: Vector, t: float,
    unit: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the real part of the sum of values times e^(-i angle t), and a bound on its error.

    The sum is compensated. A value has the size ``sizes`` and the relative error ``errors``; sine,
    cosine and their argument are off by a few units of roundoff.
    """
    total = lost = error = 0.0
    for k in range(angles.size):
        turn = angles[k] * t
        term = real[k] * math.cos(turn) + imaginary[k] * math.sin(turn) - lost
        more = total + term
        lost = (more - total) - term
        total = more
        if sizes[k] > 0.0:
            error += sizes[k] * (errors[k] + unit * (16.0 + 4.0 * abs(turn)))
    return total, error


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
