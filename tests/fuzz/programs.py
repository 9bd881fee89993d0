"""Solutions of the programs: the level as asked, the value of the channel, the bound below all.

The optimum comes from the simplex method in fractions, at a ratio just below e^epsilon: no more
than that is allowed, so no bound may be above it.
"""

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

import fastpriv as fp
from fuzz import balls, optima
from fuzz.balls import less
from oracles.channels import product_matrix


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
    return case.spec["delta"] * len(case.sizes)


def judge_dp(case, _, given):
    """Return what is broken about a solution of PD-DP."""
    asked = case.spec["epsilon"]
    broken = _level(
        given, asked, _readings(given.channel, case), lambda V: balls.dp_level(V, case.pairs)
    )
    return broken | _value(case, given) | _bound(given, lambda: _optimum(case, asked, joint=False))


def judge_i(case, _, given):
    """Return what is broken about a solution of PD-I.

    At its threshold E_i has no room to round inwards: there the level may be some 1e-14 more.
    """
    asked = _possible(case)
    allowed = asked + (3e-14 + 4e-15 * asked) * (given.method == "closed-form")

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


def _ratio(epsilon):
    """Return a fraction from 1 to e^epsilon, with 128 bits of the excess."""
    before, ctx.prec = ctx.prec, 128
    mantissa, exponent = arb(epsilon).expm1().lower().man_exp()
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
    if isinstance(channel, fp.PosteriorChannel | fp.TiltedChannel):
        law = [arb(float(v)) for v in channel._law.pmf()]
        found = [balls.tilted_matrix(law, sizes, channel.epsilon)]
        if isinstance(channel, fp.PosteriorChannel):
            found.append(balls.posterior_matrix(case.p, sizes, channel.epsilon))
        return found
    if isinstance(channel, fp.ProductChannel):
        given = channel.to_dict()
        factors = [given["factors"][k] for k, count in given["rows"] for _ in range(count)]
        V = product_matrix([balls.balls(factor) for factor in factors])
    else:
        V = balls.balls(channel.matrix())
    return [V, [balls.normal(row) for row in V]]
