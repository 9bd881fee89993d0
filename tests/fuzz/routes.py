"""Quantities that several calls of the library compute: what each call says, side by side.

Answers are spans (``spans.py``), and all spans of one quantity must meet.
"""

import contextlib
import io
import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyProfile
from fastpriv.cli.main import main as command
from fuzz import parts
from fuzz.spans import (
    LEVEL,
    LEVEL_LEAST,
    SECONDS,
    UNIT,
    Quantity,
    Span,
    above,
    average,
    both,
    by_root,
    channels,
    exported,
    level,
    near,
    optimum,
    raised_level,
    same,
    searched,
    stacked,
    ways,
)

# Capacities.


def _capacity(case):
    found = [level("channel", fp.channel_capacity(case.channel))]
    found += [level("matrix", fp.channel_capacity(case.one), case.rounded + case.sums)]
    found += [level("stack", fp.channel_capacity(case.stack)[0], case.rounded + case.sums)]
    if case.n == 1:
        found += [level("individual_capacity", fp.individual_capacity(case.channel), case.sums)]
    return found


def _whole_group(case):
    return [
        level("channel_capacity", fp.channel_capacity(case.channel), case.sums),
        level(
            "group_capacity of all", fp.group_capacity(case.channel, case.n, time_limit=None),
            case.sums,
        ),
    ]  # fmt: skip


def _one_of_a_group(case):
    return [
        level("individual_capacity", fp.individual_capacity(case.channel, time_limit=None)),
        level("group_capacity of one", fp.group_capacity(case.channel, 1, time_limit=None)),
    ]


def _no_budget(case):
    return [
        level("individual_capacity", fp.individual_capacity(case.channel), case.sums),
        level("constrained_capacity at 0", fp.constrained_capacity(case.channel, 0.0), case.sums),
        level(
            "balance_function at 0, added",
            _added(fp.balance_function(case.channel, 0.0), fp.individual_capacity(case.channel)),
            case.sums,
        ),
    ]


def _added(first, second):
    return fp.Bracket(first.lower + second.lower, first.upper + second.upper)


def _budget(case):
    """Return an entropy from 0 to the largest, often at an end."""
    return min(case.share, 1.0) * math.log(case.size)


def _entropies(case):
    b = _budget(case)
    return [
        level("constrained_capacity", fp.constrained_capacity(case.dense, b), case.sums),
        level(
            "individual_capacity over an entropy set",
            fp.individual_capacity(
                case.dense, fp.PriorSet.entropy(case.size, b), time_limit=SECONDS
            ),
            case.sums,
        ),
    ]


def _everything(case):
    """Yield sets that hold every prior."""
    size = case.size
    yield "all", fp.PriorSet.all(size)
    yield "box", fp.PriorSet.box([0.0] * size, [1.0] * size)
    yield "min_entropy", fp.PriorSet.min_entropy(size, 0.0)
    yield "total_variation", fp.PriorSet.total_variation(case.pmf, 1.0)
    yield "entropy", fp.PriorSet.entropy(size, 0.0)
    if case.positive and case.pmf.min() > 1e-300:
        radius = math.nextafter(-math.log(case.pmf.min()), math.inf) + 1e-9
        yield "kl_ball", fp.PriorSet.kl_ball(case.pmf, radius)
    yield "polytope", fp.PriorSet.polytope(np.ones((1, size)), [2.0])


def _all_priors(case):
    found = [level("leakage_capacity", fp.leakage_capacity(case.dense))]
    found += [level("strong_dp_level", fp.strong_dp_level(case.dense))]
    for name, priors in _everything(case):
        found.append(searched(f"pml_level over {name}", fp.pml_level(case.dense, priors)))
    return found


def _individual_sets(case):
    found = [level("all", fp.individual_capacity(case.dense), case.sums)]
    names = ["box", "total_variation", "min_entropy", "entropy", "polytope"]
    name = names[int(case.share * 1e6) % len(names)]
    given = fp.individual_capacity(case.dense, dict(_everything(case))[name], time_limit=SECONDS)
    found.append(level(name, given, case.sums))
    return found


def _independent(case):
    return [
        level("independent", fp.individual_capacity(case.channel, "independent"), case.sums),
        level(
            "product", fp.individual_capacity(case.channel, fp.PriorSet.product(case.sizes)),
            case.sums,
        ),
    ]  # fmt: skip


def _independent_below(case):
    return [
        level("independent", fp.individual_capacity(case.channel, "independent"), case.sums),
        level("all", fp.individual_capacity(case.channel), case.sums),
        level("channel_capacity", fp.channel_capacity(case.channel), case.sums),
        above("maximal_leakage", fp.maximal_leakage(case.channel), case.sums),
        above("strong_dp_level", fp.strong_dp_level(case.channel), case.sums),
    ]


def _information_below(case):
    return [
        average("mutual_information", fp.mutual_information(case.channel, case.prior), case.sums),
        level("channel_capacity", fp.channel_capacity(case.channel), case.sums),
    ]


def _capacity_prior(case):
    best = fp.capacity_prior(case.dense)
    return [
        average(
            "mutual_information", fp.mutual_information(case.dense, best), case.sums + 4 * UNIT
        ),
        level("channel_capacity", fp.channel_capacity(case.dense), case.sums),
    ]


# Sets of priors.


def _single(case):
    """Yield sets that hold one prior only."""
    p = case.pmf
    yield "box", fp.PriorSet.box(p, p)
    yield "total_variation", fp.PriorSet.total_variation(p, 0.0)
    yield "kl_ball", fp.PriorSet.kl_ball(p, 0.0)


def _single_prior(case):
    found = [level("prior", fp.pml_level(case.dense, case.plain))]
    found += [level("largest pml", fp.pml(case.dense, case.plain).max())]
    found += [level("max_information", fp.max_information(case.dense, case.plain))]
    for name, priors in _single(case):
        found.append(searched(name, fp.pml_level(case.dense, priors), 2 * case.size * UNIT))
    return found


def _single_polytope(case):
    eye = np.eye(case.size)
    given = fp.PriorSet.polytope(np.vstack([eye, -eye]), np.concatenate([case.pmf, -case.pmf]))
    return [
        level("prior", fp.pml_level(case.dense, case.plain)),
        searched("polytope", fp.pml_level(case.dense, given)),
    ]


#: Largest level over a polytope that is sharp; outputs of probability e^-20 are above rounding.
PROVABLE = 20.0


def _around(case):
    """Return bounds around the prior."""
    return case.pmf * (1.0 - case.share), np.minimum(1.0, case.pmf + case.share * (1.0 - case.pmf))


def _box_and_polytope(case):
    low, high = _around(case)
    eye = np.eye(case.size)
    given = fp.PriorSet.polytope(np.vstack([eye, -eye]), np.concatenate([high, -low]))
    box = fp.pml_level(case.dense, fp.PriorSet.box(low, high))
    found = fp.pml_level(case.dense, given)
    # A polytope counts a database as possible that only the sum of the others rules out. A linear
    # program proves the probability of an output only to some 1e-15, which a large level needs.
    ruled_out = (high > 0.0) & (low.sum() - low >= 1.0)
    loose = ruled_out.any() or float(box) > PROVABLE
    return [
        searched("box", box),
        above("polytope", found) if loose else searched("polytope", found),
    ]


def _inside(case):
    low, high = _around(case)
    size, p = case.size, case.pmf
    inside = level("prior", fp.pml_level(case.dense, case.plain), 2 * size * UNIT)
    entropy = case.plain.entropy() * (1.0 - 1e-12)
    least = case.plain.min_entropy() * (1.0 - 1e-12)
    sets = {
        "box": fp.PriorSet.box(low, high),
        "total_variation": fp.PriorSet.total_variation(p, case.share),
        "kl_ball": fp.PriorSet.kl_ball(p, case.share),
        "entropy": fp.PriorSet.entropy(size, max(entropy, 0.0)),
        "min_entropy": fp.PriorSet.min_entropy(size, max(least, 0.0)),
    }
    name = list(sets)[int(case.share * 1e6) % len(sets)]
    return [
        inside,
        searched(name, fp.pml_level(case.dense, sets[name])),
        searched("all", fp.pml_level(case.dense, fp.PriorSet.all(size))),
    ]


def _uniform_sets(case):
    size, n = case.size, case.n
    found = [level("uniform", fp.pml_level(case.dense, fp.Uniform(1, size).pmf()), 4 * size * UNIT)]
    least = fp.PriorSet.min_entropy(size, math.log(size))
    found.append(searched("min_entropy", fp.pml_level(case.dense, least), 16 * size * UNIT))
    if set(case.sizes) == {2}:
        for made in (fp.PriorSet.bernoulli_interval, fp.PriorSet.iid_interval):
            found.append(searched(made.__name__, fp.pml_level(case.dense, made(n, 0.5))))
        boxed = fp.PriorSet.row_box([0.5, 0.5], [0.5, 0.5], n)
        found.append(searched("row_box", fp.pml_level(case.dense, boxed)))
    return found


def _bits(case):
    c = 0.5 * min(case.share, 1.0)
    low, high = [c, c], [1.0 - c, 1.0 - c]
    found = [
        searched("bernoulli", fp.pml_level(case.dense, fp.PriorSet.bernoulli_interval(case.n, c)))
    ]
    boxed = fp.pml_level(case.dense, fp.PriorSet.row_box(low, high, case.n))
    if case.n == 1:
        found.append(searched("iid", fp.pml_level(case.dense, fp.PriorSet.iid_interval(1, c))))
        found.append(
            searched("box", fp.pml_level(case.dense, fp.PriorSet.box(low, high)), 4 * UNIT)
        )
    return [*found, searched("row_box", boxed, 4 * UNIT)]


def _record_over_sets(case):
    """The leakage about the only record is the leakage about the database."""
    low, high = _around(case)
    c = 0.5 * min(case.share, 1.0)
    sets = {
        "box": lambda: fp.PriorSet.box(low, high),
        "total_variation": lambda: fp.PriorSet.total_variation(case.pmf, case.share),
        "kl_ball": lambda: fp.PriorSet.kl_ball(case.pmf, case.share),
        "row_box": lambda: fp.PriorSet.row_box(low, high, 1),
        "all": lambda: fp.PriorSet.all(case.size),
        "product": lambda: fp.PriorSet.product(case.sizes),
    }
    if case.size == 2:
        sets["bernoulli"] = lambda: fp.PriorSet.bernoulli_interval(1, c)
        sets["iid"] = lambda: fp.PriorSet.iid_interval(1, c)
    name = list(sets)[int(case.share * 1e6) % len(sets)]
    made = sets[name]()
    given = {
        "database": fp.pml_level(case.dense, made),
        "record": fp.pml_level(case.dense, made, 0),
        "worst record": fp.pml_level(case.dense, made, "worst"),
    }
    if name not in ("row_box", "bernoulli", "iid"):  # single outputs have an algorithm
        given["row_pml"] = float(np.max(fp.row_pml(case.dense, made, 0)))
    # Searches for records end within 1e-7.
    spans = [searched(f"{name}, {route}", value) for route, value in given.items()]
    return [Span(span.route, span.low - 1e-6, span.high) for span in spans]


def _information_at_one_prior(case):
    """Over a single prior, the capacity of the only record is the information."""
    found = [average("information", fp.mutual_information(case.dense, case.plain), case.sums)]
    name, made = list(_single(case))[int(case.share * 1e6) % 3]
    given = fp.individual_capacity(case.dense, made, time_limit=SECONDS)
    return [*found, level(name, given, case.sums + 4 * UNIT)]


def _information_of_bits(case):
    uniform = fp.mutual_information(case.dense, fp.Uniform(1, 2))
    found = [average("information", uniform, case.sums)]
    for made in (fp.PriorSet.bernoulli_interval, fp.PriorSet.iid_interval):
        given = fp.individual_capacity(case.dense, made(1, 0.5), time_limit=SECONDS)
        found.append(level(made.__name__, given, case.sums + 4 * UNIT))
    boxed = fp.PriorSet.row_box([0.5, 0.5], [0.5, 0.5], 1)
    given = fp.individual_capacity(case.dense, boxed, time_limit=SECONDS)
    return [*found, level("row_box", given, case.sums + 4 * UNIT)]


def _iid_below(case):
    c = 0.5 * min(case.share, 1.0)
    return [
        searched("iid", fp.pml_level(case.dense, fp.PriorSet.iid_interval(case.n, c))),
        searched("bernoulli", fp.pml_level(case.dense, fp.PriorSet.bernoulli_interval(case.n, c))),
        searched("product", fp.pml_level(case.dense, fp.PriorSet.product(case.sizes))),
        searched("all", fp.pml_level(case.dense, fp.PriorSet.all(case.size))),
    ]


def _wholly_known(case):
    """A record among records that are fixed, by its number or by the rest."""
    i = int(case.share * 1e6) % case.n
    found = [level("pml_level of a record", fp.pml_level(case.dense, case.plain, i))]
    found.append(level("largest row_pml", np.max(fp.row_pml(case.dense, case.plain, i))))
    if case.n == 1:
        found.append(level("pml_level", fp.pml_level(case.dense, case.plain)))
    return found


def _one_record(case):
    return [
        level("dp_level", fp.dp_level(case.one)),
        level("strong_dp_level", fp.strong_dp_level(case.one)),
        level("hockey_stick_epsilon at 0", fp.hockey_stick_epsilon(case.one, 0.0)),
        level("identifiability at uniform", _uniform_identifiability(case), 2 * UNIT),
    ]


def _uniform_identifiability(case):
    return fp.identifiability_level(case.one, fp.Uniform(1, case.size))


def _levels_below(case):
    return [
        level("maximal_leakage", fp.maximal_leakage(case.dense), case.sums),
        above("leakage_capacity", fp.leakage_capacity(case.dense), case.sums),
    ]


def _average_leakage(case):
    """Maximal leakage is ln E e^pml, the multiplicative capacity, and what uniform guesses gain."""
    found = [level("maximal_leakage", fp.maximal_leakage(case.one), case.sums)]
    uniform = fp.Uniform(1, case.size)
    found.append(level("g_leakage, uniform", fp.g_leakage(case.one, uniform), case.sums + 4 * UNIT))
    found.append(level("g_capacity", fp.g_capacity(case.one), case.sums))
    found.append(level("gain_capacity", fp.gain_capacity(case.one, uniform), case.sums))
    leaks = np.asarray(fp.pml(case.one, uniform))
    with np.errstate(over="ignore"):
        total = float(np.exp(leaks) @ case.matrix.mean(axis=0))
    found.append(level("mean of pml", math.log(total), case.sums + 16 * case.size * UNIT))
    return found


# Hockey-stick, profile, ledger.


def _deltas(case):
    given = fp.hockey_stick(case.dense, case.epsilon)
    profile = PrivacyProfile.of(case.dense)
    off = (case.sums + 2 * UNIT) * (1.0 + math.exp(min(case.epsilon, 700.0)))
    off = off if given else off + 1.0
    several = fp.hockey_stick(case.dense, [case.epsilon, 0.5])
    found = [level("hockey_stick", given), level("hockey_stick of many", several[0])]
    bracket = profile.delta(case.epsilon)
    found.append(Span("profile", bracket.lower - off, bracket.upper + off))
    many = profile.delta([case.epsilon, 0.5])[0]
    found.append(Span("profile of many", many.lower - off, many.upper + off))
    return found


def _read(profile):
    return PrivacyProfile.from_json(profile.to_json())


def _epsilons(case):
    """The level at a delta, which moves by the error of delta over its slope."""
    profile = PrivacyProfile.of(case.dense)
    given = fp.hockey_stick_epsilon(case.dense, case.delta)
    bracket = profile.epsilon(case.delta)
    found = [
        level("profile", bracket),
        level("profile read from JSON", _read(profile).epsilon(case.delta)),
    ]
    if 0.0 < case.delta < 1.0:
        ledger = Ledger({"approximate-dp": (1e6, case.delta)})
        try:
            ledger.spend(case.dense)
            drawn = PrivacyProfile.realised(case.dense).epsilon(case.delta)
            found += same({"ledger": (ledger.spent["approximate-dp"], drawn.upper)})
        except fp.BudgetExceeded:
            pass
    if case.sums == 0.0:
        found.append(level("hockey_stick_epsilon", given))
    return found


def _inverse(case):
    """The delta at the level of a delta is no larger; below that level it is no smaller."""
    e = fp.hockey_stick_epsilon(case.dense, case.delta)
    return [
        level("delta at its level", fp.hockey_stick(case.dense, e))
        if e < 1e300
        else above("", 1.0),
        Span("delta", case.delta, case.delta * (1 + LEVEL) + LEVEL_LEAST),
    ]


def _composed(case):
    once = PrivacyProfile.of(case.dense)
    pair = fp.compose(case.dense, case.dense)
    return [
        level("self_compose", once.self_compose(2).delta(case.epsilon)),
        level("compose", once.compose(PrivacyProfile.of(case.dense)).delta(case.epsilon)),
        level("read from JSON", _read(once.self_compose(2)).delta(case.epsilon)),
        level(
            "profile of compose()", PrivacyProfile.of(pair).delta(case.epsilon),
            16 * (UNIT + case.sums) * (1 + math.exp(min(case.epsilon, 700.0))),
        ),
    ]  # fmt: skip


def _risks(case):
    profile = PrivacyProfile.of(case.dense)
    delta, risk = profile.delta(0.0), profile.bayes_risk()
    return [
        level("delta at 0", delta, 2 * UNIT),
        level("1 - 2 bayes_risk", fp.Bracket(1 - 2 * risk.upper, 1 - 2 * risk.lower), 2 * UNIT),
    ]


def _responses(case):
    m, e = max(2, case.sizes[0]), min(case.spec["channel"].get("epsilon", case.epsilon), 700.0)
    return [
        level("randomised_response", PrivacyProfile.randomised_response(m, e).delta(case.epsilon)),
        level("of E_d", PrivacyProfile.of(fp.HammingChannel(1, m, e)).delta(case.epsilon)),
        level("hockey_stick of E_d", fp.hockey_stick(fp.HammingChannel(1, m, e), case.epsilon)),
    ]


def _products(case):
    """Two independent releases: the composed channel, and the sum of levels above it."""
    pair = fp.compose(case.channel, case.channel)
    moved = 2 * case.rounded + 4 * UNIT
    return [
        level("dp_level of compose()", fp.dp_level(pair), moved),
        above("twice the level", 2.0 * fp.dp_level(case.channel)),
    ]


def _composition_bound(case):
    pair = fp.compose(case.dense, case.dense)
    return [
        level("individual_capacity of compose()", fp.individual_capacity(pair)),
        above("composition_bound", fp.composition_bound(case.dense, case.dense)),
    ]


def _gaussian(case):
    sigma, e = 0.3 + 9.0 * case.share, case.epsilon
    return [
        level("profile", PrivacyProfile.gaussian(sigma).delta(e)),
        level("gaussian_delta", fp.mechanisms.gaussian_delta(sigma**2, e), UNIT),
        level("four of half", PrivacyProfile.gaussian(2 * sigma).self_compose(4).delta(e)),
    ]


# Further measures.


def _factor(case):
    """The leakage factor is the information over the entropy."""
    entropy = case.plain.entropy()
    share = float(fp.mutual_information(case.dense, case.plain)) / entropy
    return [
        Span("leakage_factor", *near(fp.leakage_factor(case.dense, case.plain))),
        Span("information over entropy", *near(share)),
    ]


def _known_record(case):
    """Whoever knows record 0 sees the channel of the others."""
    rows = np.array(case.space.rows(np.arange(case.size)))[:, 0] == 0
    part = case.pmf[rows]
    given = fp.conditional_pml(case.dense, case.plain, {0: 0})
    narrow = fp.pml(fp.Channel(case.matrix[rows]), part / part.sum())
    return [
        level("conditional_pml", np.max(given), 8 * UNIT),
        level("pml of the part", np.max(narrow), 8 * case.size * UNIT),
    ]


def _many(case):
    table = fp.audit_many([case.one, case.one], case.pmf)
    prior = fp.Dense(case.pmf)
    asked = {
        "dp": fp.dp_level(case.one),
        "strong-dp": fp.strong_dp_level(case.one),
        "maximal-leakage": fp.maximal_leakage(case.one),
        "identifiability": fp.identifiability_level(case.one, prior),
        "pml": fp.pml_level(case.one, prior),
    }
    name = list(asked)[int(case.share * 1e6) % len(asked)]
    return [level("audit_many", table[name][0]), level("one by one", asked[name])]


def _distortions(case):
    """The distance between records that is given, and the one that is known."""
    rows = np.array(case.space.rows(np.arange(case.size)))
    metric = (rows[:, None] != rows[None]).sum(axis=2) * 1.0
    return [
        average("known", fp.distortion(case.dense, case.plain), 4 * UNIT),
        average("given", fp.distortion(case.dense, case.plain, metric), 4 * UNIT),
    ]


def priors(ask, kind, **options):
    """Return the question of structured and dense priors."""

    def spans(case):
        return [kind("structured", ask(case.prior)), kind("dense", ask(case.plain), case.weighed)]

    fits = lambda case: case.ordinary and not isinstance(case.prior, fp.Dense)  # noqa: E731
    return Quantity(spans, fits=fits, **options)


def _groups(case):
    k = 1 + int(case.share * 1e6) % case.n
    found = fp.group_capacity(case.dense, k, time_limit=None)
    return [
        level("individual_capacity", fp.individual_capacity(case.dense), case.sums),
        level("group_capacity", found, case.sums),
        above("group_bound", fp.group_bound(case.dense, k), case.sums),
    ]


def _truths(case):
    asked = (fp.singles_out, fp.is_data_independent)
    found = {f.__name__: (f(case.channel), f(case.dense)) for f in asked}
    return same(found)


# Programs.


def _law(case):
    return case.prior if case.spec["prior"]["kind"] != "dense" else case.plain


def _allowed(case):
    return case.positive and case.size <= 8 and 1e-9 < case.epsilon < 30 and case.pmf.min() > 1e-9


def _programs(name):
    solve = {"dp": fp.solve_pd_dp, "identifiability": fp.solve_pd_i}[name]

    def ask(case):
        prior, epsilon = _law(case), case.epsilon
        if name == "identifiability":
            epsilon = epsilon + math.nextafter(prior.epsilon_x(), math.inf) * (1 + 1e-9)
        found = [
            optimum("float", solve(prior, epsilon)),
            optimum("dense prior", solve(case.plain, epsilon), case.weighed),
            optimum("solve", fp.solve(prior, name, epsilon=epsilon)),
        ]
        if case.size <= 4:
            found.append(optimum("exact", solve(case.plain, epsilon, exact=True), case.weighed))
        return found

    return Quantity(ask, share=0.04, fits=_allowed)


def _exact_distortion(matrix, pmf, sizes):
    """Return the expected number of changed records as a fraction."""
    rows = fp.Space(sizes).rows(np.arange(len(pmf)))
    far = (np.array(rows)[:, None] != np.array(rows)[None]).sum(axis=2).tolist()
    terms = (
        Fraction(p) * Fraction(w) * d
        for p, line, away in zip(pmf, matrix, far, strict=True)
        for w, d in zip(line, away, strict=True)
        if d and w and p
    )
    return sum(terms, Fraction(0))


def promised(solve, measure, least=None):
    """Return the question whether a program's channel has the value and the level it reports."""

    def ask(case):
        epsilon = case.epsilon + (least(case.plain) * (1 + 1e-9) if least else 0.0)
        solved = solve(case.plain, epsilon)
        pairs = {
            "level of the channel": (measure(solved.channel, case.plain), solved.level),
            "level": (solved.level, epsilon),
        }
        if isinstance(solved.channel, fp.Channel) and case.weighed == 0.0:
            matrix = np.array(solved.channel.matrix()).tolist()
            exact = _exact_distortion(matrix, case.pmf.tolist(), case.sizes)
            pairs["distortion of the channel"] = exact, Fraction(solved.value)
        wrong = [name for name, (reached, reported) in pairs.items() if reached > reported]
        return (
            [Span(wrong[0], 1.0, 1.0), Span(f"promised {pairs[wrong[0]]}", 0.0, 0.0)]
            if wrong
            else []
        )

    fits = lambda case: _allowed(case) and case.size <= 6  # noqa: E731
    return Quantity(ask, share=0.03, fits=fits, ordered=True)


def _leaking(case):
    found = fp.solve_pd_pml(case.plain, case.epsilon)
    return [
        optimum("solve_pd_pml", found),
        optimum("solve", fp.solve(case.plain, "pml", epsilon=case.epsilon)),
        optimum("structured prior", fp.solve_pd_pml(case.prior, case.epsilon), case.weighed),
    ]


def _curve(case):
    low, high = case.epsilon, case.epsilon + 0.1
    curve = fp.exact_curve(case.plain, low, high)
    e = low + 0.05
    exact = fp.solve_pd_dp(case.plain, e, exact=True)
    return [
        *same({"exact": (curve.value(e), exact.value)}),
        optimum("float", fp.solve_pd_dp(case.plain, e)),
        optimum("exact", exact),
    ]


def _uniform_levels(case):
    n, m = case.n, case.sizes[0]
    distortion = case.share * n * (m - 1) / m
    least = fp.h_inverse(distortion, n, m)
    return [
        Span("h_inverse", *(near(least) if least < 1e300 else (700.0, math.inf))),
        level("privacy_level", fp.privacy_level(fp.Uniform(n, m), distortion, "dp")),
    ]


def _minimax(case):
    given = fp.PriorSet.box(case.pmf, case.pmf)
    return [
        optimum("solve_pd_dp", fp.solve_pd_dp(case.plain, case.epsilon), 2 * UNIT),
        optimum(
            "solve_minimax", fp.solve_minimax(given, case.epsilon, sizes=case.sizes),
            4 * case.size * UNIT,
        ),
    ]  # fmt: skip


def _uniform_programs(case):
    n, m, e = case.n, case.sizes[0], case.epsilon
    solved = fp.solve_pd_dp(fp.Uniform(n, m), e)
    return [
        average("h", fp.h(e, n, m)),
        average("distortion of E_d", fp.distortion(fp.HammingChannel(n, m, e), fp.Uniform(n, m))),
        optimum("solve_pd_dp", solved, 4 * UNIT),
    ]


def _rates(case):
    distortion = case.share * 0.5 * case.n
    solved = fp.solve_pd_mip(case.plain, distortion)
    found = [
        optimum("solve_pd_mip", solved),
        level("privacy_level", fp.privacy_level(case.plain, distortion, "mutual-information")),
    ]
    if case.n == 1:
        metric = 1.0 - np.eye(case.size)
        mapping = fp.design_mapping(np.diag(case.pmf), metric, distortion)
        found.append(optimum("design_mapping of the data itself", mapping, 4 * UNIT))
    return found


def _levels(name):
    def ask(case):
        distortion = case.share * case.n
        curve = fp.tradeoff_curve(case.plain, [name], [distortion])
        solved = fp.solve(case.plain, name, distortion=distortion)
        return [
            level("privacy_level", fp.privacy_level(case.plain, distortion, name)),
            Span("tradeoff_curve", float(curve.lower[name][0]), float(curve.upper[name][0])),
            optimum("solve", solved),
        ]

    fits = lambda case: case.positive and case.size <= 4 and case.pmf.min() > 1e-6  # noqa: E731
    return Quantity(ask, share=0.02, fits=fits)


def _there_and_back(case):
    """The least level at the least distortion of a level is no larger than that level."""
    solved = fp.solve_pd_dp(case.plain, case.epsilon)
    return [
        level("privacy_level", fp.privacy_level(case.plain, solved.value, "dp")),
        above("epsilon", case.epsilon),
    ]


# Command line and JSON.


def _run(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(words)
    if code:
        raise AssertionError(f"exit code {code}: {err.getvalue()[:200]}")
    return json.loads(out.getvalue())


def _commands(case):
    with tempfile.TemporaryDirectory() as folder:
        mechanism, prior = Path(folder) / "channel.csv", Path(folder) / "prior.csv"
        mechanism.write_text("\n".join(",".join(map(repr, r)) for r in case.matrix.tolist()))
        prior.write_text("\n".join(map(repr, case.pmf.tolist())))
        sizes = ",".join(map(str, case.sizes))
        capacity = _run(["capacity", str(mechanism), "--sizes", sizes, "--json"])["value"]
        words = ["audit", str(mechanism), "--prior", str(prior), "--sizes", sizes]
        levels = _run([*words, "--notions", "dp,pml,maximal-leakage", "--json"])["levels"]
    found = fp.channel_capacity(case.dense)
    asked = {"dp": fp.dp_level(case.dense), "pml": fp.pml_level(case.dense, case.plain)}
    asked["maximal-leakage"] = fp.maximal_leakage(case.dense)
    said = {name: _number(levels[name]["value"]) for name in asked}
    said |= {"lower": capacity["lower"], "upper": capacity["upper"]}
    asked |= {"lower": found.lower, "upper": found.upper}
    return same({name: (_number(said[name]), asked[name]) for name in asked})


def _number(value):
    return math.inf if value == "infinite" else value


def _json(case):
    channel = type(case.channel).from_json(case.channel.to_json())
    prior = type(case.prior).from_json(case.prior.to_json())
    return same(
        {
            "channel": (channel == case.channel, True),
            "prior": (prior == case.prior, True),
            "dp_level": (fp.dp_level(channel), fp.dp_level(case.channel)),
            "pml_level": (fp.pml_level(channel, prior), fp.pml_level(case.channel, case.prior)),
            "capacity": (fp.channel_capacity(channel), fp.channel_capacity(case.channel)),
            "matrix": (bool((np.array(channel.matrix()) == case.matrix).all()), True),
            "pmf": (bool((np.array(prior.pmf()) == case.pmf).all()), True),
        }
    )


def _commands_of_programs(case):
    with tempfile.TemporaryDirectory() as folder:
        prior = Path(folder) / "prior.csv"
        prior.write_text("\n".join(map(repr, case.pmf.tolist())))
        words = ["solve", "dp", "--prior", str(prior), "--epsilon", repr(case.epsilon)]
        said = _run([*words, "--sizes", ",".join(map(str, case.sizes)), "--json"])
    asked = fp.solve(case.plain, "dp", epsilon=case.epsilon)
    names = ("value", "bound", "level")
    return same({name: (said[name], getattr(asked, name)) for name in names})


def _json_of_answers(case):
    found = fp.channel_capacity(case.dense)
    again = fp.Bracket.from_json(found.to_json())
    solved = fp.solve_pd_dp(case.plain, case.epsilon)
    read = fp.Solution.from_json(solved.to_json())
    names = ("value", "bound", "level", "method")
    return same(
        {"bracket": (again, found)}
        | {name: (getattr(read, name), getattr(solved, name)) for name in names}
        | {"channel": (read.channel, solved.channel)}
    )


def _audited(case):
    notions = ["dp", "strong-dp", "maximal-leakage", "channel-capacity", "pml", "identifiability"]
    found = fp.audit(case.dense, case.plain, notions=notions).levels
    calls = [fp.dp_level, fp.strong_dp_level, fp.maximal_leakage, fp.channel_capacity]
    asked = [call(case.dense) for call in calls]
    asked += [
        fp.pml_level(case.dense, case.plain),
        fp.identifiability_level(case.dense, case.plain),
    ]
    return same({n: (found[n].value, v) for n, v in zip(notions, asked, strict=True)})


def _contractions(case):
    constant = fp.sdpi_constant(case.dense, case.plain, time_limit=None)
    root = fp.maximal_correlation(case.dense, case.plain)
    low = root.lower if isinstance(root, fp.Bracket) else root * (1 - 1e-9) - 1e-8
    return [
        Span("maximal_correlation squared", max(0.0, low) ** 2 - 1e-15, math.inf, case.sums),
        level("sdpi_constant", constant, case.sums),
        level("contraction_coefficient", fp.contraction_coefficient(case.dense), case.sums),
    ]


def _one_or_more(case):
    return case.n > 1


QUANTITIES = {
    # structured and dense
    "dp_level": channels(lambda c, case: fp.dp_level(c)),
    "strong_dp_level": channels(lambda c, case: fp.strong_dp_level(c)),
    "maximal_leakage": channels(lambda c, case: fp.maximal_leakage(c)),
    "hockey_stick": channels(lambda c, case: fp.hockey_stick(c, min(case.epsilon, 3.0)), share=0.5),
    "contraction_coefficient": channels(
        lambda c, case: fp.contraction_coefficient(c), moved=by_root
    ),
    "individual_capacity": channels(
        lambda c, case: fp.individual_capacity(c), share=0.3, moved=by_root
    ),
    "channel_capacity": Quantity(_capacity, fits=lambda c: c.ordinary, moved=by_root),
    "identifiability_level": both(fp.identifiability_level),
    "mutual_information": both(fp.mutual_information, average, moved=by_root),
    "pml_level": both(fp.pml_level),
    "max_information": both(fp.max_information),
    "information_privacy_level": both(fp.information_privacy_level),
    "maximal_correlation": both(fp.maximal_correlation, share=0.5),
    "sdpi_constant": both(
        lambda c, p: fp.sdpi_constant(c, p, time_limit=None), share=0.005, moved=by_root
    ),
    "distortion": Quantity(
        lambda case: [
            average(name, fp.distortion(channel, prior), 2.0 * off + case.sums)
            for name, channel, prior, off in ways(case)
        ],
        fits=lambda c: c.ordinary and c.matrix.shape == (c.size, c.size),
    ),
    "exported dp_level": exported(fp.dp_level),
    "exported channel_capacity": exported(fp.channel_capacity, 1.0, moved=by_root),
    "exported contraction": exported(fp.contraction_coefficient, 1.0, moved=by_root),
    # stack and single
    "stack dp_level": stacked(fp.dp_level),
    "stack strong_dp_level": stacked(fp.strong_dp_level),
    "stack maximal_leakage": stacked(fp.maximal_leakage),
    "stack hockey_stick": Quantity(
        lambda case: [
            level("stack", fp.hockey_stick(case.stack, case.epsilon)[0]),
            level("single", fp.hockey_stick(case.one, case.epsilon)),
        ]
    ),
    "stack contraction": stacked(fp.contraction_coefficient),
    "stack identifiability": stacked(fp.identifiability_level, prior=True),
    "stack mutual_information": stacked(fp.mutual_information, average, prior=True),
    "stack pml_level": stacked(fp.pml_level, prior=True),
    "stack information_privacy": stacked(fp.information_privacy_level, prior=True),
    "stack maximal_correlation": stacked(fp.maximal_correlation, prior=True),
    # capacities
    "capacity of the whole group": Quantity(_whole_group, share=0.02, moved=by_root),
    "capacity of a group of one": Quantity(_one_of_a_group, share=0.1, moved=by_root),
    "capacity without a budget": Quantity(_no_budget, share=0.1, moved=by_root),
    "capacity at an entropy": Quantity(
        _entropies, share=0.008, moved=by_root, fits=lambda c: 1 < c.size <= 4
    ),
    "capacity over everything": Quantity(_individual_sets, share=0.004, moved=by_root),
    "capacity of independent records": Quantity(_independent, share=0.3, moved=by_root),
    "capacities in order": Quantity(_independent_below, share=0.3, ordered=True, moved=by_root),
    "information below capacity": Quantity(_information_below, ordered=True, moved=by_root),
    "information of the capacity prior": Quantity(
        _capacity_prior, ordered=True, share=0.3, moved=by_root
    ),
    # sets of priors
    "leakage over everything": Quantity(_all_priors, share=0.1),
    "leakage at one prior": Quantity(_single_prior, fits=lambda c: c.ordinary),
    "leakage at one prior, polytope": Quantity(
        _single_polytope, share=0.02, fits=lambda c: c.ordinary and c.pmf[c.pmf > 0].min() > 1e-6
    ),
    "leakage over a box": Quantity(_box_and_polytope, share=0.05, fits=lambda c: c.ordinary),
    "leakage inside a set": Quantity(_inside, ordered=True, fits=lambda c: c.ordinary),
    "leakage at the uniform prior": Quantity(_uniform_sets, fits=lambda c: c.ordinary),
    "leakage of bits": Quantity(_bits, share=0.5, fits=lambda c: set(c.sizes) == {2}),
    "leakage of bits in order": Quantity(
        _iid_below, share=0.5, ordered=True, fits=lambda c: set(c.sizes) == {2}
    ),
    "leakage of the only record": Quantity(
        _record_over_sets, share=0.3, fits=lambda c: c.ordinary and c.n == 1
    ),
    "information at one prior": Quantity(
        _information_at_one_prior,
        share=0.02,
        moved=by_root,
        fits=lambda c: c.ordinary and c.n == 1 and c.size > 1,
    ),
    "information of a bit": Quantity(
        _information_of_bits, share=0.2, moved=by_root, fits=lambda c: c.sizes == [2]
    ),
    "leakage of a record": Quantity(_wholly_known, share=0.5),
    # measures of one record
    "levels of one record": Quantity(_one_record),
    "levels in order": Quantity(_levels_below, ordered=True),
    "maximal leakage by averages": Quantity(_average_leakage, fits=lambda c: c.ordinary),
    "contractions in order": Quantity(
        _contractions, share=0.01, ordered=True, moved=by_root, fits=lambda c: c.ordinary
    ),
    # profiles
    "delta": Quantity(_deltas, share=0.1),
    "epsilon": Quantity(_epsilons, share=0.1),
    "delta at epsilon at delta": Quantity(_inverse, share=0.5, ordered=True),
    "composed delta": Quantity(_composed, share=0.02, fits=lambda c: c.sums == 0.0),
    "risks": Quantity(_risks, share=0.05),
    "randomised response": Quantity(_responses, share=0.1),
    "composed levels": Quantity(_products, share=0.3, ordered=True, fits=lambda c: c.ordinary),
    "composed capacities": Quantity(
        _composition_bound, share=0.02, ordered=True, moved=by_root,
        fits=lambda c: c.ordinary and c.sums == 0.0,
    ),
    # programs
    "program dp": _programs("dp"),
    "program identifiability": _programs("identifiability"),
    "program minimax": Quantity(_minimax, share=0.02, fits=_allowed),
    "program at the uniform prior": Quantity(
        _uniform_programs, share=0.1,
        fits=lambda c: len(set(c.sizes)) == 1 and c.sizes[0] > 1 and c.epsilon < 30,
    ),
    "rate": Quantity(_rates, share=0.03, fits=lambda c: c.size <= 8),
    "least level dp": _levels("dp"),
    "least level identifiability": _levels("identifiability"),
    "level at a distortion at a level": Quantity(
        _there_and_back, share=0.02, ordered=True, fits=_allowed
    ),
    "promise of dp": promised(fp.solve_pd_dp, lambda c, p: fp.dp_level(c)),
    "promise of identifiability": promised(
        fp.solve_pd_i, fp.identifiability_level, lambda p: math.nextafter(p.epsilon_x(), math.inf)
    ),
    "promise of pml": promised(fp.solve_pd_pml, fp.pml_level),
    "program pml": Quantity(_leaking, share=0.02, fits=_allowed),
    "program curve": Quantity(_curve, share=0.01, fits=lambda c: _allowed(c) and c.size <= 4),
    "level at a distortion, uniform": Quantity(
        _uniform_levels, share=0.1, fits=lambda c: len(set(c.sizes)) == 1 and c.sizes[0] > 1
    ),
    # further measures
    "entropy": priors(lambda p: p.entropy(), average, moved=by_root),
    "min_entropy": priors(lambda p: p.min_entropy(), average),
    "epsilon_x": priors(lambda p: p.epsilon_x(), level),
    "epsilon_hat": priors(lambda p: p.epsilon_hat(), level),
    "max_individual_capacity": channels(
        lambda c, case: fp.max_individual_capacity(c), searched, share=0.2
    ),
    "worst_leakage_factor": Quantity(
        lambda case: [
            searched(name, fp.worst_leakage_factor(channel, prior), 1e6 * (off + case.sums))
            for name, channel, prior, off in ways(case)
        ],
        share=0.3, fits=lambda c: c.ordinary and c.plain.entropy() > 1e-3,
    ),
    "g_leakage": both(fp.g_leakage, raised_level, share=0.3),
    "posterior_vulnerability": both(fp.posterior_vulnerability, level, share=0.3),
    "leakage factor": Quantity(
        _factor, share=0.3, fits=lambda c: c.ordinary and c.plain.entropy() > 1e-6
    ),
    "leakage with a known record": Quantity(
        _known_record, share=0.3, fits=lambda c: c.ordinary and c.n > 1 and c.positive
    ),
    "audit_many": Quantity(_many, share=0.1),
    "distortion by a metric": Quantity(
        _distortions, fits=lambda c: c.ordinary and c.matrix.shape == (c.size, c.size)
    ),
    "capacities of groups in order": Quantity(
        _groups, share=0.02, ordered=True, moved=by_root, fits=_one_or_more
    ),
    "truths": Quantity(_truths, share=0.3, fits=lambda c: c.ordinary and c.rounded == 0.0),
    "gaussian noise": Quantity(_gaussian, share=0.1, fits=lambda c: c.epsilon < 10),
    # other ways to ask
    "command line": Quantity(_commands, share=0.01),
    "command line of programs": Quantity(_commands_of_programs, share=0.01, fits=_allowed),
    "JSON": Quantity(_json, share=0.3),
    "JSON of answers": Quantity(_json_of_answers, share=0.1, fits=_allowed),
    "audit": Quantity(_audited, share=0.05),
    # parts of a database
    **parts.QUANTITIES,
}  # fmt: skip
