"""The questions, what the library claims about each answer, and whether the claim is true."""

import copy
import math

import numpy as np
from flint import arb, ctx

import fastpriv as fp
from fastpriv.errors import FastprivError
from fuzz import balls, optima, plain, profiles, programs, specs
from fuzz.balls import ONE, ZERO, less
from fuzz.judging import Question, Violation, average, ball, between, compared, ends, level
from fuzz.runs import strict
from oracles.spaces import lines


class Case:
    """A case with everything that its questions need, exact and in the library."""

    def __init__(self, spec):
        self.spec = spec
        self.sizes = tuple(specs.sizes_of(spec["channel"]))
        self.channel = specs.build_channel(spec["channel"])
        self.prior = specs.build_prior(spec["prior"])
        self.pairs = balls.pairs_of(self.sizes)
        self._kept = {}

    def _at_precision(self, name, make):
        key = name, ctx.prec
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @property
    def W(self):  # noqa: N802
        """The exact matrix, entries that were given as floats taken as they are."""
        return self._at_precision("W", lambda: balls.channel(self.spec["channel"], self.sizes))

    @property
    def p(self):
        """The exact prior."""
        return self._at_precision("p", lambda: balls.prior(self.spec["prior"]))

    @property
    def laws(self):
        """The exact matrix, rows that were given as floats divided by their sums."""
        given = self.spec["channel"]["kind"] in ("dense", "product", "query")
        make = lambda: [balls.normal(row) for row in self.W]  # noqa: E731
        return self._at_precision("laws", make) if given else self.W

    def readings(self, laws):
        """Yield the matrices that the numbers of the channel may mean, see ``specs.readings``.

        At its least epsilon the exact output law of E_i may be negative: that is no channel.
        """
        matrix = self.laws if laws else self.W
        if not any(v < 0 for row in matrix for v in row):
            yield matrix
        if self.spec["channel"]["kind"] == "posterior":
            yield self._at_precision("drawn", self._drawn)

    def _drawn(self):
        law = specs.output_law(self.channel.base, arb)
        return balls.tilted_matrix(law, self.sizes, self.spec["channel"]["epsilon"])


#: The last case: the next one may have its channel and prior.
_LAST = []


def made(spec):
    """Return the case of a specification, with what is known already of its channel and prior."""
    if _LAST and all(_LAST[0].spec[name] is spec[name] for name in ("channel", "prior")):
        case = copy.copy(_LAST[0])
        case.spec = spec
    else:
        case = Case(spec)
    _LAST[:] = [case]
    return case


def _noise(spec):
    """Return what information may be off by, beside its relative error.

    Doubles below 1e-307 lose digits. Products add up the information of their rows, in which sums
    of laws that are not quite one have no part together.
    """
    if spec["channel"]["kind"] != "product":
        return 1e-318
    factors = spec["channel"]["factors"]
    sums = [[math.fsum((-1.0, *row)) for row in factor] for factor in factors]
    return 1e-318 + sum(max(s) - min(s) for s in sums) ** 2


def _correlation(case, W, given):
    least, most = ends(given)
    wider, broken = ONE + arb(2) ** -100, set()
    if not balls.correlation_below(W, case.p, (ball(most) * wider + arb(2) ** -1300) ** 2):
        broken.add("below")
    narrow = isinstance(given, fp.Bracket) and least > 0.0
    if narrow and balls.correlation_below(W, case.p, (ball(least) / wider) ** 2):
        broken.add("lower end above")
    return broken


def _sdpi(case, W, given):
    """Lower bounds on the truth: the squared correlation, and ratios of a few laws."""
    most = ball(given.upper)
    support = [x for x, v in enumerate(case.p) if balls.positive(v)]
    if len(support) < 2:
        return compared(given, ZERO, ZERO)
    if given.upper >= 1.0:  # of laws it is no more
        return {"lower end above"} if given.lower > 1.0 else set()
    wider = ONE + arb(2) ** -100
    if not balls.correlation_below(W, case.p, most * wider + arb(2) ** -1300):
        return {"below"}
    q = balls.output(W, case.p)
    for x in support:
        for t in (ONE, arb(0.5), arb(0.125)):
            law = [(1 - t) * v + (t if x == y else 0) for y, v in enumerate(case.p)]
            far = balls.divergence(balls.output(W, law), q)
            if less(most * balls.divergence(law, case.p), far):
                return {"below"}
    return {"lower end above"} if given.lower > 1.0 else set()


def _epsilon_tilde(case, _, given):
    """Some law within a few units in the last place has it, and no smaller level than the truth.

    R^-1 p may be negative by the rounding errors of p, times |R^-1|: those of a prior that is right
    to (4 n + 16) units, and of the library's own arithmetic.
    """
    p, sizes = case.p, case.sizes
    least, most = ends(given)
    if not all(map(balls.positive, p)):
        return set() if most == math.inf else {"below"}
    if most == math.inf:
        return {"infinite"}
    room = arb((8 * len(sizes) + 32) * 2.0**-53)
    if most > 0.0:
        exact, size = balls.inverse_output(p, sizes, arb(most))
        if any(less(v + room * s, ZERO) for v, s in zip(exact, size, strict=True)):
            return {"below"}
    elif any(less(a * (1 + room), b) for a in p for b in p):
        return {"below"}
    if least > 1e-300:
        exact, _ = balls.inverse_output(p, sizes, arb(least) * (1 - arb("1e-9")))
        if all(v > 0 for v in exact):
            return {"too high"}
    return set()


def _group(case):
    return 1 + case.spec["count"] % len(case.sizes)


def many(measure, truth, claim=None, prior=True, **options):
    """Return the question of a stack of two plain matrices, of which the first is judged.

    The floats of the matrix are what was given, and databases are values of one row.
    """

    def ask(case):
        matrix = np.array(case.channel.matrix())
        stack = np.stack([matrix, np.full_like(matrix, 1.0 / matrix.shape[1])])
        given = (stack, case.prior.pmf()) if prior else (stack,)
        return float(measure(*given, *((case.spec["epsilon"],) if options.get("level") else ()))[0])

    def judge(case, _, given):
        W = balls.balls(case.channel.matrix())
        p = balls.normal(case.prior.pmf().tolist())
        pairs = [(i, j) for i in range(len(W)) for j in range(len(W)) if i != j]
        value = truth(W, p, pairs, case)
        if claim == "near":
            room = abs(value) * arb("1e-12") + arb("1e-300")
            return {"far"} if less(room, abs(value - ball(given))) else set()
        return {"below"} if less(ball(given), value) else set()

    return Question(ask, judge, weight=1)


QUESTIONS = {
    "dp_level": Question(
        lambda c: fp.dp_level(c.channel), level(lambda c, W: balls.dp_level(W, c.pairs))
    ),
    "strong_dp_level": Question(
        lambda c: fp.strong_dp_level(c.channel), level(lambda c, W: balls.strong_dp_level(W))
    ),
    "leakage_capacity": Question(
        lambda c: fp.leakage_capacity(c.channel), level(lambda c, W: balls.strong_dp_level(W))
    ),
    "maximal_leakage": Question(
        lambda c: fp.maximal_leakage(c.channel), level(lambda c, W: balls.maximal_leakage(W))
    ),
    "hockey_stick": Question(
        lambda c: fp.hockey_stick(c.channel, c.spec["epsilon"]),
        level(lambda c, W: balls.hockey_stick(W, c.pairs, c.spec["epsilon"])),
    ),
    "identifiability_level": Question(
        lambda c: fp.identifiability_level(c.channel, c.prior),
        level(lambda c, W: balls.identifiability_level(W, c.p, c.pairs)),
    ),
    "pml_level": Question(
        lambda c: fp.pml_level(c.channel, c.prior), level(lambda c, W: balls.pml_level(W, c.p))
    ),
    "information_privacy_level": Question(
        lambda c: fp.information_privacy_level(c.channel, c.prior),
        level(lambda c, W: balls.information_privacy(W, c.p)),
    ),
    "max_information": Question(
        lambda c: fp.max_information(c.channel, c.prior),
        level(lambda c, W: balls.pml_level(W, c.p)),
    ),
    "mutual_information": Question(
        lambda c: fp.mutual_information(c.channel, c.prior),
        average(lambda c, W: balls.mutual_information(W, c.p), _noise),
        near=True,
        least=_noise,
    ),
    "distortion": Question(
        lambda c: fp.distortion(c.channel, c.prior),
        average(lambda c, W: balls.distortion(W, c.p, c.sizes), lambda spec: 1e-120),
        near=True,
        least=lambda spec: 1e-120,
    ),
    "maximal_correlation": Question(
        lambda c: fp.maximal_correlation(c.channel, c.prior), _correlation, weight=2
    ),
    "contraction_coefficient": Question(
        lambda c: fp.contraction_coefficient(c.channel),
        # Rows that sum to more than one have more, and laws at most one.
        between(lambda c, W: (optima.contraction_bound(W).min(ONE), ONE)),
    ),
    "sdpi_constant": Question(
        lambda c: fp.sdpi_constant(c.channel, c.prior, time_limit=None), _sdpi, weight=1
    ),
    "channel_capacity": Question(
        lambda c: fp.channel_capacity(c.channel), between(lambda c, W: optima.capacity(W)), weight=2
    ),
    "individual_capacity": Question(
        lambda c: fp.individual_capacity(c.channel, time_limit=None),
        lambda c, W, given: compared(given, *optima.group_capacity(W, c.sizes, 1, given.lower)),
        weight=1,
    ),
    "group_capacity": Question(
        lambda c: fp.group_capacity(c.channel, _group(c), time_limit=None),
        lambda c, W, given: compared(
            given, *optima.group_capacity(W, c.sizes, _group(c), given.lower)
        ),
        weight=1,
    ),
    **profiles.PROFILES,
    "epsilon_x": Question(
        lambda c: c.prior.epsilon_x(), level(lambda c, _: balls.epsilon_x(c.p, c.pairs))
    ),
    "epsilon_hat": Question(
        lambda c: c.prior.epsilon_hat(),
        level(
            lambda c, _: balls.epsilon_hat(
                c.p, [line for axis in range(len(c.sizes)) for line in lines(axis, c.sizes)]
            )
        ),
    ),
    "epsilon_tilde": Question(lambda c: c.prior.epsilon_tilde(), _epsilon_tilde),
    "many dp_level": many(
        fp.dp_level, lambda W, p, pairs, c: balls.dp_level(W, pairs), prior=False
    ),
    "many strong_dp_level": many(
        fp.strong_dp_level, lambda W, p, pairs, c: balls.strong_dp_level(W), prior=False
    ),
    "many maximal_leakage": many(
        fp.maximal_leakage, lambda W, p, pairs, c: balls.maximal_leakage(W), prior=False
    ),
    "many hockey_stick": many(
        fp.hockey_stick,
        lambda W, p, pairs, c: balls.hockey_stick(W, pairs, c.spec["epsilon"]),
        prior=False,
        level=True,
    ),
    "many identifiability_level": many(
        fp.identifiability_level,
        lambda W, p, pairs, c: balls.identifiability_level(W, p, pairs),
    ),
    "many pml_level": many(fp.pml_level, lambda W, p, pairs, c: balls.pml_level(W, p)),
    "many information_privacy_level": many(
        fp.information_privacy_level, lambda W, p, pairs, c: balls.information_privacy(W, p)
    ),
    "many mutual_information": many(
        fp.mutual_information, lambda W, p, pairs, c: balls.mutual_information(W, p), claim="near"
    ),
    "solve_pd_dp": Question(programs.ask_dp, programs.judge_dp, weight=1, databases=4),
    "solve_pd_i": Question(programs.ask_i, programs.judge_i, weight=1, databases=4),
    "solve_pd_pml": Question(programs.ask_pml, programs.judge_pml, weight=1, databases=4),
    "solve_pd_mip": Question(programs.ask_mip, programs.judge_mip, weight=1, databases=6),
    "solve dp dense": Question(programs.ask_matrix("dp"), programs.judge_dp, weight=1, databases=4),
    "solve identifiability dense": Question(
        programs.ask_matrix("identifiability"), programs.judge_i, weight=1, databases=4
    ),
    "exact dp": Question(
        programs.ask_exact(False), programs.judge_exact(False), weight=1, databases=4
    ),
    "exact identifiability": Question(
        programs.ask_exact(True), programs.judge_exact(True), weight=1, databases=4
    ),
    "privacy_level dp": Question(
        programs.ask_level("dp"), programs.judge_level(False), weight=1, databases=4
    ),
    "privacy_level identifiability": Question(
        programs.ask_level("identifiability"), programs.judge_level(True), weight=1, databases=4
    ),
    "privacy_level mutual-information": Question(
        programs.ask_level("mutual-information"), programs.judge_rate, weight=1, databases=6
    ),
}

#: What was asked and could not be decided, by question.
UNDECIDED = []


def answer(spec, check=False):
    """Ask one case: the violation, or None; an error of ours in words is an answer too.

    With ``check`` the plain references answer as well, and have to agree.
    """
    question = QUESTIONS[spec["question"]]
    with strict():
        try:
            case = made(spec)
            given = question.ask(case)
        except FastprivError:
            return None
        except Exception as error:
            return Violation(spec, "raised", repr(error)[:200])
    numbers = isinstance(given, float | fp.Bracket)
    if numbers and any(map(math.isnan, ends(given))):
        return Violation(spec, "nan", repr(given))
    try:
        broken = balls.at_some_precision(lambda: _broken(question, case, given))
    except balls.Undecided:
        UNDECIDED.append(spec)
        return None
    if check and spec["question"] in plain.TRUTHS:
        other = plain.broken(spec, case.channel, given, question)
        if bool(broken) != bool(other):
            return Violation(spec, "references disagree", f"{given!r}: {broken or other}")
    return Violation(spec, ", ".join(sorted(broken)), repr(given)) if broken else None


def _broken(question, case, given):
    """Return the claims that are broken, for E_i under both readings of its numbers."""
    broken = None
    for W in case.readings(question.laws):
        here = question.judge(case, W, given)
        broken = here if broken is None else broken & here
        if not broken:
            return broken
    return broken
