"""Random trees of releases, composed in several ways: brackets hold and agree.

    python -m tests.accounting.trees --cases 10000 --seed 1

Each case draws some releases, composes them as a nested tree, in another order and one by one, and
asks for delta and epsilon. All answers must be brackets, overlap each other and fall with the
question; small finite cases are listed outcome by outcome, and cases of one closed form are
compared with it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from collections import Counter

import mpmath as mp

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile

#: What cases are: listed outcomes, Gaussian noise, few releases of any kind, many of them.
_STYLES = ("finite", "normal", "few", "few", "many")
#: What was drawn: a name and its parameters.
Leaf = tuple[str, tuple[float, ...]]

_FINITE = ("response", "declared", "sampled response", "channel")
_NOISE = (
    "gaussian",
    "sampled gaussian",
    "laplace",
    "sampled laplace",
    "discrete gaussian",
    "discrete laplace",
    "bounded range",
    "zcdp",
)


def leaf(rng: random.Random, kinds: tuple[str, ...]) -> Leaf:
    """Draw one release."""
    kind = rng.choice(kinds)
    q = 10.0 ** rng.uniform(-3.0, 0.0)
    parameters = {
        "response": (rng.randint(2, 5), rng.uniform(0.01, 3.0)),
        "declared": (rng.uniform(0.0, 2.0), 10.0 ** rng.uniform(-12.0, -1.0)),
        "sampled response": (rng.uniform(0.05, 3.0), q),
        "channel": (rng.uniform(0.05, 0.95), rng.uniform(0.05, 0.95)),
        "gaussian": (10.0 ** rng.uniform(-0.5, 2.0),),
        "sampled gaussian": (10.0 ** rng.uniform(-0.4, 1.0), q),
        "laplace": (10.0 ** rng.uniform(-0.5, 2.0),),
        "sampled laplace": (10.0 ** rng.uniform(-0.5, 1.0), q),
        "discrete gaussian": (rng.uniform(0.5, 20.0), rng.randint(1, 3)),
        "discrete laplace": (rng.uniform(0.02, 2.0), rng.randint(1, 3)),
        "bounded range": (10.0 ** rng.uniform(-2.0, 0.5),),
        "zcdp": (10.0 ** rng.uniform(-4.0, 0.0),),
    }
    return kind, tuple(map(float, parameters[kind]))


def profile(given: Leaf) -> PrivacyProfile:
    """Return the profile of a release."""
    kind, at = given
    if kind == "response":
        made = PrivacyProfile.randomised_response(int(at[0]), at[1])
    elif kind == "declared":
        made = PrivacyProfile.from_epsilon_delta(*at)
    elif kind == "sampled response":
        made = PrivacyProfile.from_epsilon_delta(at[0]).poisson_subsampled(at[1])
    elif kind == "channel":
        made = PrivacyProfile.of([[at[0], 1.0 - at[0]], [at[1], 1.0 - at[1]]])
    elif kind in ("gaussian", "sampled gaussian"):
        made = PrivacyProfile.gaussian(*at)
    elif kind in ("laplace", "sampled laplace"):
        made = PrivacyProfile.laplace(*at)
    elif kind == "discrete gaussian":
        made = PrivacyProfile.discrete_gaussian(at[0], int(at[1]))
    elif kind == "discrete laplace":
        made = PrivacyProfile.discrete_laplace(at[0], int(at[1]))
    elif kind == "bounded range":
        made = PrivacyProfile.exponential(at[0])
    else:
        made = PrivacyProfile.zcdp(at[0])
    return made.with_relation("replace-one")  # all of them compose here


def pair(given: Leaf) -> list[tuple[mp.mpf, mp.mpf]]:
    """Outcomes of a finite release: chances under the first and the second database."""
    kind, at = given
    one = mp.mpf(1)
    if kind == "response":
        m, odds = int(at[0]), mp.exp(mp.mpf(at[1]))
        total = odds + m - 1
        rest = [(one / total, one / total)] * (m - 2)
        return [(odds / total, one / total), (one / total, odds / total), *rest]
    delta = mp.mpf(at[1]) if kind == "declared" else mp.mpf(0)
    stay = (1 - delta) / (1 + mp.exp(-mp.mpf(at[0])))
    plain = [(delta, mp.mpf(0)), (stay, 1 - delta - stay), (1 - delta - stay, stay)]
    plain.append((mp.mpf(0), delta))
    if kind == "declared":
        return plain
    q = mp.mpf(at[1])
    return [((1 - q) * b + q * a, b) for a, b in plain]


def listed(leaves: list[Leaf], epsilon: float) -> mp.mpf:
    """Delta by listing all outcomes, the larger of both orders."""
    level, best = mp.exp(mp.mpf(epsilon)), mp.mpf(0)
    for flipped in (False, True):
        terms = []
        for outcome in itertools.product(*map(pair, leaves)):
            first, second = (mp.fprod(one[i] for one in outcome) for i in (0, 1))
            if flipped:
                first, second = second, first
            terms.append(max(first - level * second, mp.mpf(0)))
        best = max(best, mp.fsum(terms))
    return best


def normal(leaves: list[Leaf], epsilon: float) -> mp.mpf:
    """Delta of Gaussian noise."""
    mu, t = mp.sqrt(mp.fsum(mp.mpf(at[0]) ** -2 for _, at in leaves)), mp.mpf(epsilon)

    def tail(x: mp.mpf) -> mp.mpf:
        return mp.erfc(x / mp.sqrt(2)) / 2

    return tail(t / mu - mu / 2) - mp.exp(t) * tail(t / mu + mu / 2)


def tree(parts: list[PrivacyProfile], rng: random.Random) -> PrivacyProfile:
    """Compose in a random nesting."""
    parts = list(parts)
    while len(parts) > 1:
        count = rng.randint(2, len(parts))
        some, parts = parts[:count], parts[count:]
        parts.insert(rng.randint(0, len(parts)), some[0].compose(*some[1:]))
    return parts[0]


def check(seed: int, styles: tuple[str, ...] = _STYLES) -> str:
    """Check one random case; AssertionError where something does not hold."""
    rng = random.Random(seed)
    style = rng.choice(styles)
    kinds = {"finite": _FINITE[:3], "normal": ("gaussian",)}.get(style, _FINITE + _NOISE)
    kept = [leaf(rng, kinds) for _ in range(rng.randint(1, 2 if style == "many" else 3))]
    counts = [rng.randint(2, 2000) if style == "many" else rng.randint(1, 2) for _ in kept]
    whole = tree([profile(one).self_compose(k) for one, k in zip(kept, counts, strict=True)], rng)
    epsilon, delta = 10.0 ** rng.uniform(-2.0, 0.7), 10.0 ** rng.uniform(-14.0, -1.0)
    answers = whole.delta(epsilon), whole.epsilon(delta)
    for answer, most in zip(answers, (1.0, math.inf), strict=True):
        assert 0.0 <= answer.lower <= answer.upper <= most, (seed, kept, counts, answer)
    more = whole.delta(1.25 * epsilon)
    assert more.lower <= answers[0].upper, (seed, kept, counts, more, answers)
    if math.isfinite(answers[1].upper):  # the level that is told keeps delta
        assert whole.delta(answers[1].upper).lower <= delta * (1 + 1e-12), (seed, kept, counts)
    if answers[1].lower > 0.0 and math.isfinite(answers[1].lower):
        below = whole.delta(answers[1].lower * (1.0 - 1e-12))
        assert below.upper >= delta * (1 - 1e-12), (seed, kept, counts, below)
    if style != "many":
        single = [profile(one) for one, k in zip(kept, counts, strict=True) for _ in range(k)]
        rng.shuffle(single)
        other = tree(single, rng)
        again = other.delta(epsilon), other.epsilon(delta)
        for first, second in zip(answers, again, strict=True):
            assert first.lower <= second.upper, (seed, kept, counts, first, second)
            assert second.lower <= first.upper, (seed, kept, counts, first, second)
        flat = [one for one, k in zip(kept, counts, strict=True) for _ in range(k)]
        if style in ("finite", "normal"):
            with mp.workdps(40):
                truth = (listed if style == "finite" else normal)(flat, epsilon)
                assert answers[0].lower <= truth <= answers[0].upper, (seed, kept, counts, truth)
    return style


def main() -> None:
    """Run many cases and print how they went."""
    parser = argparse.ArgumentParser(description="random trees of releases")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    given = parser.parse_args()
    styles: Counter[str] = Counter()
    failures, start = [], time.monotonic()
    for case in range(given.cases):
        if time.monotonic() - start > given.seconds:
            break
        try:
            styles[check(given.seed * 1_000_003 + case)] += 1
        except (AssertionError, fp.errors.FastprivError, ArithmeticError, RuntimeWarning) as error:
            failures.append(error)
            print(type(error).__name__, str(error)[:400], flush=True)
    spent = time.monotonic() - start
    total = sum(styles.values()) + len(failures)
    print(f"{total} cases in {spent:.0f} s, {len(failures)} failed: {dict(styles)}")


if __name__ == "__main__":
    main()
