"""Noise laws, leakage curves and water levels from their definitions, in many digits."""

from mpmath import mp, mpf

mp.dps = 50


def weight_sums(p, beta):
    """Sums of exp(-beta i^p) and of i^p exp(-beta i^p) over i >= 1.

    Term by term while that is short; else as integral plus zeta(-pj) (-beta)^j / j!, the expansion
    at small beta.
    """
    p, beta = mpf(p), mpf(beta)
    end = ((beta + 95) / beta) ** (1 / p)
    if end < 4000:
        weights = [mp.exp(-beta * mpf(i) ** p) for i in range(1, int(end) + 2)]
        return mp.fsum(weights), mp.fsum(w * mpf(i) ** p for i, w in enumerate(weights, 1))
    total = mp.gamma(1 + 1 / p) * beta ** (-1 / p) - mpf(1) / 2
    moment = mp.gamma(1 + 1 / p) / p * beta ** (-1 / p - 1)
    previous = mp.inf
    for j in range(1, 300):
        term = (-beta) ** j / mp.factorial(j) * mp.zeta(-p * j)
        if term == 0:
            continue
        if p >= 1 and abs(term) >= previous:
            break  # the expansion is asymptotic: stop at its least term
        total += term
        moment -= term * j / beta
        previous = abs(term)
        if previous < mpf(10) ** -38 * total and j > 3 * beta:
            break
    return total, moment


def max_entropy(p, beta):
    """(A, ln E|Z|^p, entropy) of the law A e^(-beta |i|^p)."""
    total, moment = weight_sums(p, beta)
    zero = 1 / (1 + 2 * total)
    return zero, mp.log(2 * moment * zero), mp.log1p(2 * total) + beta * 2 * moment * zero


def entropy_bound(p, beta, distortion):
    """ln sum exp(-beta |i|^p) + beta distortion^p: no law of that norm has more entropy.

    The least over beta is the largest entropy; the error of beta enters it squared.
    """
    return mp.log1p(2 * weight_sums(p, beta)[0]) + beta * mpf(distortion) ** mpf(p)


def cycle_distance(i, modulus):
    return min(i % modulus, -i % modulus)


def cycle_law(p, beta, modulus):
    weights = [mp.exp(-mpf(beta) * mpf(cycle_distance(i, modulus)) ** p) for i in range(modulus)]
    return [w / mp.fsum(weights) for w in weights]


def laplace_leakage(n, scale, p, y):
    """l(D_1 -> y) by summing over the count of the other rows."""
    scale, p, y = mpf(scale), mpf(p), mpf(y)
    density = []
    for d in (0, 1):
        terms = [
            mp.binomial(n - 1, s) * p**s * (1 - p) ** (n - 1 - s)
            * mp.exp(-abs(y - mpf(d + s) / n) / scale)
            for s in range(n)
        ]  # fmt: skip
        density.append(mp.fsum(terms))
    return mp.log(max(density) / ((1 - p) * density[0] + p * density[1]))


def gaussian_delta(variance, epsilon, sensitivity=1):
    s, e, d = mp.sqrt(mpf(variance)), mpf(epsilon), mpf(sensitivity)
    a, b = d / (2 * s), e * s / d
    with mp.workdps(80):
        return +(mp.ncdf(a - b) - mp.exp(e) * mp.ncdf(-a - b))


def water_filling_bound(signal, budget, price):
    """Lagrangian lower bound on sum 1/2 ln(1 + l/s) over s >= 0 of sum at most ``budget``."""
    total = -mpf(price) * budget
    for each in map(mpf, signal):
        s = (-each + mp.sqrt(each**2 + 2 * each / price)) / 2
        total += mp.log1p(each / s) / 2 + price * s
    return total


def trial(words, law, width, reach, counts, slots, lift):
    """The proposal that four words make: its value, log chance and log acceptance, exactly.

    ``law`` is (p, rate, unit). Chances are those of one word in 2^64, per proposal.
    """
    p, rate, unit = map(mpf, law)
    strip = slots[words[0] % 4096]
    negative = words[0] // 4096 % 2
    if strip < len(counts) - 1:
        k = strip * 2**width + words[0] // 8192 % 2**width
        log_chance = mp.log(counts[strip]) - (13 + width) * mp.log(2)
    else:
        j = 0
        while words[2] >> j & 1 == 0:
            j += 1
        k = strip * 2**width + (2**j - 1) * 2**reach + words[3] // 2 ** (64 - reach - j)
        log_chance = mp.log(counts[strip]) - (13 + j + 1 + reach + j) * mp.log(2)
    log_weight = -rate * (mpf(k) / unit) ** p if k else -mp.log(2)
    # accept = weight * constant / chance, the constant being e^lift 2^-(13 + width)
    log_accept = log_weight + mpf(lift) - (13 + width) * mp.log(2) - log_chance
    return (-k if negative else k), log_chance, log_accept
