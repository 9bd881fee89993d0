"""Small compositions against enumeration: ``python -m tests.fuzz.trees --cases 100000``.

Each case composes a few small finite mechanisms, and sometimes Gaussian or Laplace noise, as a
random tree, and asks for delta at a level and for epsilon at a delta. All outcomes of the finite
mechanisms are listed in extended precision. Noise has a closed form given each of them: delta(t) is
the mean of the curve of the noise at t minus the loss of the outcome. The sums have proved errors;
a case within its error is decided by balls of ``DIGITS`` binary digits. If neighbours exceed a
guarantee, or a lower bound exceeds what they reach, that is a violation.
"""

import math
import random
import sys
import time
from collections import Counter
from itertools import combinations_with_replacement, groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a command

import flint
import numpy as np
from flint import arb

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fuzz import runs

#: Binary digits of balls.
DIGITS = 256
#: Most outcomes that are listed.
MOST = 4000
#: Unit of extended precision; where it is that of doubles, more cases are decided by balls.
FINE = float(np.finfo(np.longdouble).eps)
#: Units of roundoff of a listed probability: at most 8 factors, each a few operations.
UNITS = 128.0
#: Shares of cases: noise beside finite mechanisms, and noise with or without them.
NOISE_BESIDE = 0.0005
NOISE_ALONE = 0.08
#: Discrete Gaussian noise is listed up to this many standard deviations: e^-760 is left out.
REACH = 39.0

FINITE = (
    "response", "response", "declared", "sampled response", "channel",
    "discrete laplace", "discrete gaussian",
)  # fmt: skip
NOISE = ("gaussian", "laplace", "sampled gaussian", "sampled laplace")


def short(value):
    """Return a number of few digits, so that printed cases are exact."""
    return float(f"{value:.6g}")


def leaf(rng, kinds):
    """Draw one mechanism: its kind and its parameters."""
    kind = rng.choice(kinds)
    q = short(10.0 ** rng.uniform(-3.0, -0.05))
    level = short(10.0 ** rng.uniform(-2.0, 0.6))
    return kind, *{
        "response": (rng.randint(2, 5), level),
        "declared": (rng.choice([0.0, level]), short(10.0 ** rng.uniform(-12.0, -0.5))),
        "sampled response": (level, q),
        "channel": (short(rng.uniform(0.02, 0.98)), short(rng.uniform(0.02, 0.98))),
        "discrete laplace": (level, rng.randint(1, 3)),
        "discrete gaussian": (short(rng.uniform(0.3, 0.8)), rng.randint(1, 2)),
        "gaussian": (short(10.0 ** rng.uniform(-0.4, 1.5)),),
        "laplace": (short(10.0 ** rng.uniform(-0.4, 1.5)),),
        "sampled gaussian": (short(10.0 ** rng.uniform(-0.3, 1.0)), q),
        "sampled laplace": (short(10.0 ** rng.uniform(-0.3, 1.0)), q),
    }[kind]


def drawn(seed, number):
    """Draw a case: mechanisms with counts, a level, a delta, and whether all are fixed."""
    rng = random.Random(f"{seed}/{number}")
    style = rng.random()  # noise beside finite mechanisms takes long
    finite = rng.randint(1, 3) if style > NOISE_ALONE or style < NOISE_BESIDE else 0
    kept = [leaf(rng, FINITE) for _ in range(finite)]
    parts = [(one, rng.choice([1, 1, 2, 3, 5])) for one in kept]
    if style <= NOISE_ALONE:
        one = leaf(rng, NOISE)
        parts.append((one, rng.choice([1, 1, 2, 7]) if one[0] == "gaussian" else 1))
    return {
        "parts": parts,
        "epsilon": short(rng.choice([0.0, 10.0 ** rng.uniform(-2.0, 0.7)])),
        "delta": short(10.0 ** rng.uniform(-12.0, -0.5)),
        "adaptive": not any(one[0] == "channel" for one, _ in parts),
        "order": rng.randrange(1 << 30),
    }


def profile(one):
    """Return the profile of a mechanism."""
    kind, *at = one
    made = {
        "response": lambda: PrivacyProfile.randomised_response(*at),
        "declared": lambda: PrivacyProfile.from_epsilon_delta(*at),
        "sampled response": lambda: PrivacyProfile.from_epsilon_delta(at[0]).poisson_subsampled(
            at[1]
        ),
        "channel": lambda: PrivacyProfile.of([[at[0], 1.0 - at[0]], [at[1], 1.0 - at[1]]]),
        "discrete laplace": lambda: PrivacyProfile.discrete_laplace(*at),
        "discrete gaussian": lambda: PrivacyProfile.discrete_gaussian(*at),
    }
    result = made[kind]() if kind in made else getattr(PrivacyProfile, kind.split()[-1])(*at)
    return result.with_relation("replace-one")  # all of them compose here


def composed(case):
    """Compose the profiles of a case in a random nesting."""
    rng = random.Random(case["order"])
    parts = [profile(one).self_compose(k) for one, k in case["parts"]]
    rng.shuffle(parts)
    while len(parts) > 1:
        count = rng.randint(2, len(parts))
        some, parts = parts[:count], parts[count:]
        parts.append(some[0].compose(*some[1:]))
    return parts[0]


# Outcomes, in extended precision or as balls.


class Fine:
    """Numbers of extended precision."""

    number = staticmethod(np.longdouble)
    exp = staticmethod(np.exp)


class Balls:
    """Balls that contain the number."""

    number = staticmethod(arb)

    @staticmethod
    def exp(x):
        """Return e^x."""
        return x.exp()


def outcomes(one, of):
    """Return the probabilities of the outcomes of a finite mechanism under both databases."""
    kind, *at = one
    number, exp = of.number, of.exp
    unit, none = number(1.0), number(0.0)
    if kind == "response":
        m, odds = at[0], exp(number(at[1]))
        total = odds + (m - 1)
        rest = number(float(m - 2)) / total  # outcomes of the same loss, together
        return [(odds / total, unit / total), (unit / total, odds / total), (rest, rest)]
    if kind == "channel":
        # A row is divided by its sum, which rounding may move away from one.
        rows = [(number(x), number(1.0 - x)) for x in at]
        rows = [(a / (a + b), b / (a + b)) for a, b in rows]
        return list(zip(*rows, strict=True))
    if kind == "discrete laplace":
        a, d = number(at[0]), at[1]
        small = exp(-a)
        tail = unit / (unit + small)
        inner = [(unit - small) / (unit + small) * exp(-a * abs(k)) for k in range(d)]
        far = exp(-a * d) * tail
        # Outcomes x >= d together, x <= 0 together, and those between.
        between = [(inner[d - x], inner[x]) for x in range(1, d)]
        return [(tail, far), (far, tail), *between]
    if kind == "discrete gaussian":
        sigma, d = number(at[0]), at[1]
        last = math.ceil(REACH * at[0]) + 2
        weights = [exp(-number(float(x * x)) / (2 * sigma * sigma)) for x in range(last + d + 1)]
        total = weights[0] + 2 * sum(weights[1:], none)
        return [(weights[abs(x - d)] / total, weights[abs(x)] / total) for x in range(-last, last)]
    level, delta = at if kind == "declared" else (at[0], 0.0)
    delta = number(delta)
    stay = (unit - delta) / (unit + exp(-number(level)))
    move = (unit - delta) / (unit + exp(number(level)))
    plain = [(stay, move), (move, stay)]
    if kind == "declared":
        return [*plain, (delta, none), (none, delta)]
    q = number(at[1])
    return [((unit - q) * b + q * a, b) for a, b in plain]


def listed(case, of, mirrored=False):
    """Return the probabilities of all outcomes of the finite mechanisms.

    Equal mechanisms are listed by how often each outcome occurs. The databases of channels have no
    order: ``mirrored`` swaps them.
    """
    first, second = [of.number(1.0)], [of.number(1.0)]
    for one, k in case["parts"]:
        if one[0] in NOISE:
            continue
        pairs = outcomes(one, of)
        if mirrored and one[0] == "channel":
            pairs = [pair[::-1] for pair in pairs]
        some = [[], []]
        for chosen in combinations_with_replacement(pairs, k):
            same = [len(list(group)) for _, group in groupby(map(id, chosen))]
            ways = math.factorial(k) // math.prod(map(math.factorial, same))
            for i in (0, 1):
                product = chosen[0][i] * ways
                for pair in chosen[1:]:
                    product = product * pair[i]
                some[i].append(product)
        first = [x * y for x in first for y in some[0]]
        second = [x * y for x in second for y in some[1]]
    return first, second


# Curves of noise at any real level, as balls.


def normal_curve(mu, t):
    """Delta of two normal distributions at distance mu."""
    root = arb(8).sqrt()
    first, second = ((2 * t / mu + sign * mu) / root for sign in (-1, 1))
    return (first.erfc() - t.exp() * second.erfc()) / 2


def laplace_curve(e, t):
    """Delta of Laplace noise of level e."""
    if t >= e:
        return arb(0)
    if t <= -e:
        return 1 - t.exp()
    return 1 - ((t - e) / 2).exp()


def sampled_curve(curve, q, t, flipped):
    """Delta of (1-q) Q + q P against Q, or in the other order, from the curve of P against Q."""
    grown = t.exp() - 1
    if flipped:
        # 1 - (1-q) e^t = r; Q against the mixture has r delta'(t + ln q/r), delta' that of Q, P.
        r = q - (1 - q) * grown
        if r <= 0:
            return arb(0)
        return r * curve(t + (q / r).log())
    if grown <= -q:
        return -grown
    return q * curve((1 + grown / q).log())


def noise_curve(case, flipped):
    """Return the curve of the noise of a case, for any real level; None without noise."""
    for one, k in case["parts"]:
        if one[0] not in NOISE:
            continue
        kind, *at = one
        if kind.endswith("gaussian"):
            mu = arb(k).sqrt() / arb(at[0])
            curve = lambda t: normal_curve(mu, t)  # noqa: B023, E731
        else:
            e = 1 / arb(at[0])
            curve = lambda t: laplace_curve(e, t)  # noqa: B023, E731
        if kind.startswith("sampled"):
            return lambda t: sampled_curve(curve, arb(at[1]), t, flipped)
        return curve
    return None


class Truth:
    """Delta of a case: the largest one over the orders of the databases."""

    def __init__(self, case):
        self._case = case
        noisy = any(one[0] in NOISE for one, _ in case["parts"])
        self._mirrors = (False, True) if not case["adaptive"] else (False,)
        self._balls, self._fine = None, []
        number = 1
        for one, k in case["parts"]:
            if one[0] not in NOISE:
                number *= math.comb(len(outcomes(one, Fine)) + k - 1, k)
        self.known = number <= (MOST // 10 if noisy else MOST)
        if self.known and not noisy:
            for mirrored in self._mirrors:
                both = [np.array(x, dtype=np.longdouble) for x in listed(case, Fine, mirrored)]
                self._fine += [both, both[::-1]]

    def exceeds(self, t, delta):
        """Whether delta(t) is above a number: True, False, or None if not decided."""
        if self._fine:
            grown, values, errors = np.exp(np.longdouble(t)), [], []
            for p, q in self._fine:
                gain = p - grown * q
                near = gain > -4.0 * UNITS * FINE * p
                values.append(float(gain[gain > 0.0].sum() - np.longdouble(delta)))
                error = UNITS * FINE * float((p + grown * q)[near].sum())
                errors.append(4.0 * (error + FINE * delta) + 1e-320)
            if any(v > e for v, e in zip(values, errors, strict=True)):
                return True
            if all(v < -e for v, e in zip(values, errors, strict=True)):
                return False
        value, bound = self.exactly(t), arb(delta)
        return True if value > bound else (False if value < bound else None)

    def exactly(self, t):
        """Return delta(t) as a ball."""
        flint.ctx.prec = DIGITS
        if self._balls is None:
            self._balls = [listed(self._case, Balls, mirrored) for mirrored in self._mirrors]
        level, worst = arb(t), arb(0)
        for first, second in self._balls:
            for flipped in (False, True):
                p, q = (second, first) if flipped else (first, second)
                worst = worst.max(self._mean(p, q, level, flipped))
        return worst

    def _mean(self, p, q, level, flipped):
        """Return the mean of the curve of the noise over listed outcomes."""
        curve, total, grown = noise_curve(self._case, flipped), arb(0), level.exp()
        for a, b in zip(p, q, strict=True):
            if not b > 0:
                total += a
            elif curve is None:
                total += (a - grown * b).max(arb(0))
            elif a > 0:
                total += a * curve(level - (a / b).log())
        return total


def judged(case):
    """Return what is wrong with the answers of a case, None if it was not checked."""
    truth = Truth(case)
    if not truth.known:
        return None
    t, delta, adaptive = case["epsilon"], case["delta"], case["adaptive"]
    made = composed(case)
    answer, level = made.delta(t, adaptive), made.epsilon(delta, adaptive)
    wrong = []
    if truth.exceeds(t, answer.upper):
        wrong.append(f"delta({t}) is above {answer}")
    if answer.lower > 0.0 and truth.exceeds(t, answer.lower) is False:
        wrong.append(f"delta({t}) is below {answer}")
    if level.upper < math.inf and truth.exceeds(level.upper, delta):
        wrong.append(f"delta({level.upper!r}) is above {delta}")
    if level.lower == math.inf:
        wrong += ["epsilon is finite"] if truth.exceeds(700.0, delta) is False else []
    elif level.lower > 0.0 and truth.exceeds(level.lower, delta) is False:
        wrong.append(f"delta({level.lower!r}) is below {delta}")
    return wrong


def search(seed, minutes, cases, worker, workers):
    """Judge cases of a seed until there are enough or the time is over."""
    counts, broken = Counter(), {}
    end = time.monotonic() + 60.0 * minutes
    with runs.strict():
        for number in runs.numbers_of(worker, workers, 16):
            if counts["checked"] >= cases or time.monotonic() > end:
                break
            case = drawn(seed, number)
            try:
                wrong = judged(case)
            except fp.FastprivError as error:
                wrong, kind = [str(error)], "refused"
            except Exception as error:
                wrong, kind = [f"{type(error).__name__}: {error}"], "raised"
            else:
                kind = "wrong"
            counts["too many outcomes" if wrong is None else "checked"] += 1
            if wrong:
                broken.setdefault(kind, []).append((number, case, wrong))
                print(kind, number, case, wrong, flush=True)
    return counts, broken, Counter()


def main():
    """Run the search as a command: exit code 1 if something was wrong."""
    options = runs.parser("python -m tests.fuzz.trees", __doc__).parse_args()
    start, each = time.monotonic(), -(-options.cases // options.workers)
    counts, broken, _ = runs.in_processes(
        search,
        [(options.seed, options.minutes, each, k, options.workers) for k in range(options.workers)],
    )
    seconds, wrong = time.monotonic() - start, sum(map(len, broken.values()))
    print(f"{counts['checked']} trees in {seconds:.0f} s: {wrong} violations {dict(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    from fuzz.trees import main as run  # workers must find the search in a module

    sys.exit(run())
