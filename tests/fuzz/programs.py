"""Solutions of the programs: the level as asked, the value of the channel, the bound below all.

The optimum comes from the simplex method in fractions, at a ratio just below e^epsilon: no more
than that is allowed, so no bound may be above it.
"""

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx, fmpq

import fastpriv as fp
from fuzz import balls, optima
from fuzz.balls import ONE, less
from oracles.channels import product_matrix
from oracles.priors import product_pmf


def ask_dp(case):
    """Solve PD-DP."""
    return fp.solve_pd_dp(case.prior, case.spec["epsilon"])


def ask_i(case):
    """Solve PD-I, at a level from epsilon_x on."""
    return fp.solve_pd_i(case.prior, _possible(case))


def ask_pml(case):
    """Solve PD-PML."""
    return fp.solve_pd_pml(case.prior, case.spec["epsilon"])


def ask_mip(case):
    """Solve PD-MIP, at a share of the number of rows."""
    return fp.solve_pd_mip(case.prior, _distortion(case), time_limit=10.0)


def _possible(case):
    return case.prior.epsilon_x() + case.spec["epsilon"]


def _distortion(case):
    """Return a share of the number of rows, or of the distortion of a constant output."""
    whole = len(case.sizes)
    if case.spec["count"] == 2:
        p = case.prior.pmf().reshape(case.sizes)
        axes = range(p.ndim)
        rows = (p.sum(axis=tuple(j for j in axes if j != i)) for i in axes)
        whole = math.fsum(np.delete(row, row.argmax()).sum() for row in rows)
    return float(case.spec["delta"] * whole)


def judge_dp(case, _, given):
    """Return what is broken about a solution of PD-DP."""
    asked = case.spec["epsilon"]
    broken = _level(
        given, asked, _readings(given.channel, case), lambda V: balls.dp_level(V, case.pairs)
    )
    return broken | _value(case, given) | _bound(given, lambda: _optimum(case, asked, joint=False))


def judge_i(case, _, given):
    """Return what is broken about a solution of PD-I.

    Where eps_tilde and eps_X are one number, tight neighbours need equal rows, and E_i has them
    up to rounding only: there, and only there, its level may be a rounding error above.
    """
    asked = _possible(case)
    tight = given.method == "closed-form" and asked <= 1e-11 + case.prior.epsilon_x() * (1 + 1e-11)
    allowed = asked + (3e-14 + 4e-15 * asked) * tight

    def level(V):
        return balls.identifiability_level(V, case.p, case.pairs)

    broken = _level(given, allowed, _readings(given.channel, case), level) | _value(case, given)
    return broken | _bound(given, lambda: _optimum(case, asked, joint=True))


def judge_pml(case, _, given):
    """Return what is broken about a solution of PD-PML."""
    asked = case.spec["epsilon"]
    readings = _readings(given.channel, case)
    broken = _level(given, asked, readings, lambda V: balls.pml_level(V, case.p))
    broken |= _value(case, given)
    p = fractions(case.spec["prior"])
    if min(p) > 0:
        broken |= _bound(given, lambda: optima.least_leaking(p, case.sizes, _ratio(asked)))
    return broken


def judge_mip(case, _, given):
    """Return what is broken about a point of the rate-distortion curve."""
    broken, asked = set(), arb(_distortion(case))
    readings = _readings(given.channel, case)
    far = [balls.distortion(V, case.p, case.sizes) for V in readings]
    if all(less(asked * (1 + arb("1e-12")) + arb("1e-300"), d) for d in far):
        broken.add("distortion above asked")
    rates = [balls.mutual_information(V, case.p) for V in readings]
    if all(less(arb(given.value) * (1 + arb("1e-12")) + arb("1e-300"), rate) for rate in rates):
        broken.add("value too low")
    if given.bound > 0.0 and less(
        optima.rate_bound(case.p, case.sizes, _distortion(case)), arb(given.bound)
    ):
        broken.add("bound above the optimum")
    return broken


def ask_level(notion):
    """Return the question of the best level at a distortion."""
    return lambda case: fp.privacy_level(case.prior, _distortion(case), notion, time_limit=10.0)


def judge_level(joint):
    """Return the judge of a bracket of the least level of PD-DP, or of PD-I.

    The upper end is enough if the optimum there is within the distortion, a part in 1e14 granted.
    The lower end is too high if a smaller level was enough.
    """

    def judge(case, _, given):
        asked, p = _fraction(_distortion(case)), fractions(case.spec["prior"])
        least = _own_ratio(p, case.pairs) if joint else fmpq(1)

        def enough(ratio, granted=0):
            if least is None or ratio < least:
                return False
            return optima.least_distortion(p, case.sizes, ratio, joint) <= asked * (1 + granted)

        broken = set()
        above = given.upper < math.inf and _ratio(given.upper, above=True)
        if above and not enough(above, fmpq(1, 10**14)):
            broken.add("below")
        lower = min(given.lower, 2000.0)
        if lower > 0.0 and enough(_ratio(lower, share=1 - arb(2) ** -60)):
            broken.add("lower end above")
        return broken

    return judge


def _own_ratio(p, pairs):
    """Return e^epsilon_x, or None where some database is impossible beside a possible one."""
    if pairs and min(p) == 0:
        return None
    return max((p[i] / p[j] for i, j in pairs), default=fmpq(1))


def judge_rate(case, _, given):
    """Return what is broken about a bracket of the rate-distortion function."""
    asked, broken = _distortion(case), set()
    if less(arb(given.upper), optima.rate_least(case.p, case.sizes, asked)):
        broken.add("below")
    if given.lower > 0.0 and less(optima.rate_bound(case.p, case.sizes, asked), arb(given.lower)):
        broken.add("lower end above")
    return broken


def ask_matrix(notion):
    """Return the question of the best matrix at a level."""

    def ask(case):
        asked = case.spec["epsilon"] if notion == "dp" else _possible(case)
        return fp.solve(case.prior, notion, epsilon=asked, dense=True)

    return ask


def ask_exact(joint):
    """Return the question of an exact optimum."""

    def ask(case):
        asked = _possible(case) if joint else case.spec["epsilon"]
        return (fp.solve_pd_i if joint else fp.solve_pd_dp)(case.prior, asked, exact=True)

    return ask


def judge_exact(joint):
    """Return the judge of an exact optimum: the value at its ratio, and a private channel."""

    def judge(case, _, given):
        asked = _possible(case) if joint else case.spec["epsilon"]
        ratio = _fraction(given.ratio)
        if ratio > _ratio(asked, above=True):
            return {"ratio above asked"}
        p = fractions(case.spec["prior"])
        optimum = optima.least_distortion(p, case.sizes, ratio, joint)
        broken = set() if _fraction(given.value) == optimum else {"value"}
        weights = case.p if joint else [ONE] * len(p)
        levels = [
            balls.identifiability_level(V, weights, case.pairs)
            for V in _readings(given.channel, case)
        ]
        return broken | ({"level"} if all(less(arb(asked), found) for found in levels) else set())

    return judge


def _level(given, asked, readings, level):
    """Return whether the level is above what was asked, or below that of the channel."""
    broken = {"level above asked"} if given.level > asked else set()
    if given.level < math.inf and all(less(arb(given.level), level(V)) for V in readings):
        broken.add("level below")
    return broken


def _value(case, given):
    readings = _readings(given.channel, case)
    rooms = [
        (d, d * arb("1e-12") + arb("1e-300"))
        for d in (balls.distortion(V, case.p, case.sizes) for V in readings)
    ]
    return {"value"} if all(less(room, abs(d - arb(given.value))) for d, room in rooms) else set()


def _bound(given, optimum):
    if given.bound <= 0.0:
        return set()
    return {"bound above the optimum"} if _fraction(given.bound) > optimum() else set()


def _optimum(case, epsilon, joint):
    return optima.least_distortion(
        fractions(case.spec["prior"]), case.sizes, _ratio(epsilon), joint
    )


def _ratio(epsilon, above=False, share=1):
    """Return a fraction from 1 to e^epsilon, or above it, with 128 bits of the excess."""
    before, ctx.prec = ctx.prec, 128
    excess = (arb(epsilon) * share).expm1()
    mantissa, exponent = (excess.upper() if above else excess.lower()).man_exp()
    ctx.prec = before
    return 1 + fmpq(mantissa) * fmpq(2) ** int(exponent)


def _fraction(value):
    return fmpq(*Fraction(value).as_integer_ratio())


def fractions(spec):
    """Return the exact probabilities of a prior as fractions."""
    return balls.prior(spec, _normal)


def _normal(law):
    law = [_fraction(v) for v in law]
    total = sum(law, fmpq(0))
    return [v / total for v in law]


def _readings(channel, case):
    """Return the exact matrices that the numbers of a channel of ours may mean."""
    sizes = case.sizes
    if isinstance(channel, fp.HammingChannel):
        return [balls.hamming_matrix(sizes, channel.epsilon)]
    if isinstance(channel, fp.TiltedChannel):  # E_i as well: the law that was rounded to floats
        law = _law(channel.base)
        return [balls.tilted_matrix(law, sizes, channel.epsilon)]
    if isinstance(channel, fp.ProductChannel):
        given = channel.to_dict()
        factors = [given["factors"][k] for k, count in given["rows"] for _ in range(count)]
        V = product_matrix([balls.balls(factor) for factor in factors])
    else:
        V = balls.balls(channel.matrix())
    return [V, [balls.normal(row) for row in V]]


def _law(prior):
    """Return the exact probabilities of a law of ours: products of its floats, or floats."""
    if isinstance(prior, fp.Product):
        return product_pmf([[arb(float(v)) for v in row] for row in prior.marginals])
    return [arb(float(v)) for v in prior.pmf()]
