"""Quantities about parts of a database: groups of records, attributes, other neighbours.

The second route is by hand: the matrix of a group or an attribute is summed from the channel's own,
and neighbours are matrices of two rows.
"""

import math
from itertools import combinations

import numpy as np

import fastpriv as fp
from fastpriv.accounting import Ledger, PrivacyProfile, calibrate
from fuzz.spans import (
    LEVEL,
    SECONDS,
    UNIT,
    Quantity,
    Span,
    above,
    average,
    by_root,
    level,
    near,
    optimum,
    same,
    searched,
    ways,
)

#: Distance in nats to which convex sets of priors are searched.
SEARCHED = 4e-6


def draw_of(case):
    """Return an integer that differs from case to case."""
    return int(case.share * 1e6)


def is_ordinary(case):
    """Whether products of entries and probabilities are far from underflow."""
    return case.ordinary


# Groups of records and attributes.


def _group(case):
    chosen = [i for i in range(case.n) if draw_of(case) >> i & 1]
    return chosen or [draw_of(case) % case.n]


def _labels(case, group):
    """Return the setting of a group in every database, as a number."""
    rows = np.array(case.space.rows(np.arange(case.size)))
    sizes = [case.sizes[i] for i in group]
    return np.ravel_multi_index(tuple(rows[:, group].T), sizes)


def _kernel(labels):
    return np.eye(labels.max() + 1)[labels]


def _off(case):
    """Error of sums over databases and of logarithms of probabilities, relative to each entry."""
    rarest = -math.log(case.pmf[case.pmf > 0.0].min())
    return case.sums + (4 * case.size + 16 + 32 * rarest) * UNIT


def _by_hand(case, kernel):
    """Return p(y|u) and p(u) of an attribute with the kernel p(u|x)."""
    joint = kernel.T * case.pmf
    total = joint.sum(axis=1)
    seen = total > 0.0
    return (joint @ case.matrix)[seen] / total[seen, None], total[seen] / total.sum()


def _about_group(measure, whole, kind):
    """Ask a measure of some records: as records, as an attribute, and by hand."""

    def ask(case):
        group, off = _group(case), _off(case)
        labels = _labels(case, group)
        matrix, law = _by_hand(case, _kernel(labels))
        found = [
            kind(name, measure(channel, prior, group), moved + off)
            for name, channel, prior, moved in ways(case)
        ]
        found.append(kind("labels", whole(case.channel, case.prior, attribute=labels), 2 * off))
        found.append(
            kind("kernel", whole(case.dense, case.plain, attribute=_kernel(labels)), 2 * off)
        )
        found.append(kind("by hand", whole(matrix, law), 2 * off))
        if len(group) == 1:
            i = group[0]
            value = whole(case.channel, case.prior, attribute=list(range(case.sizes[i])), row=i)
            found.append(kind("values of the record", value, 2 * off))
        if len(group) == case.n:
            found.append(kind("database", whole(case.channel, case.prior), 2 * off))
        return found

    return ask


def _attribute_leakage(case):
    """Maximal leakage about an attribute: of all outputs together."""
    labels, off = _labels(case, _group(case)), 2 * _off(case)
    matrix = _by_hand(case, _kernel(labels))[0]
    found = {
        name: fp.maximal_leakage(channel, attribute=labels, prior=prior)
        for name, channel, prior, _ in ways(case)
    }
    found["by hand"] = fp.maximal_leakage(matrix)
    return [level(name, value, off) for name, value in found.items()]


def _share_of_group(case):
    """The leakage factor of a group is its information over its entropy."""
    group = _group(case)
    entropy = fp.Dense(_by_hand(case, _kernel(_labels(case, group)))[1]).entropy()
    if entropy < 1e-6:
        return []
    share = float(fp.row_information(case.dense, case.plain, group)) / entropy
    return [
        Span("leakage_factor", *near(fp.leakage_factor(case.channel, case.prior, rows=group))),
        Span("information over entropy", *near(share)),
    ]


def _joint(case):
    """Return the joint distribution of output and database."""
    return fp.Joint(case.matrix.T * case.pmf[None])


def _joint_information(case):
    joint, off = _joint(case), 2 * _off(case)
    identity = np.eye(case.size)
    found = {
        "mutual_information": fp.mutual_information(case.dense, case.plain),
        "joint": joint.information(),
        "its reverse": fp.mutual_information(joint.reverse, joint.secret),
        "attribute of the database itself": fp.mutual_information(
            identity, case.pmf, attribute=case.matrix
        ),
    }
    return [average(name, value, off) for name, value in found.items()]


def _joint_correlation(case):
    joint = _joint(case)
    found = {
        "maximal_correlation": fp.maximal_correlation(case.dense, case.plain),
        "joint": joint.maximal_correlation(),
        "its reverse": fp.maximal_correlation(joint.reverse, joint.secret),
    }
    # A root loses half of the digits of the entries.
    return [Span(name, float(value) - 1e-6, float(value) + 1e-6) for name, value in found.items()]


def _joint_constants(case):
    joint, off = _joint(case), 2 * _off(case)
    return [
        level("sdpi_constant", fp.sdpi_constant(case.dense, case.plain, time_limit=SECONDS), off),
        level("joint", joint.sdpi_constant(time_limit=SECONDS), off),
    ]


def _colluding(case):
    """Two outputs together about a third, which is an attribute of the database."""
    off, twice = 4 * _off(case), fp.compose(case.dense, case.dense)
    found = fp.collusion(_joint(case), case.dense, case.dense)
    told = fp.mutual_information(twice, case.plain, attribute=case.matrix)
    return [
        average("collusion", found.exact, off),
        average("attribute", told, off),
        average("by hand", fp.mutual_information(*_by_hand_of(case, twice)), off),
    ]


def _by_hand_of(case, channel):
    joint = case.matrix.T * case.pmf
    total = joint.sum(axis=1)
    seen = total > 0.0
    told = joint @ np.array(channel.matrix())
    return told[seen] / total[seen, None], total[seen] / total.sum()


def _alone(case):
    """One output about another."""
    off = 4 * _off(case)
    found = fp.collusion(_joint(case), case.dense, case.dense).alone[0]
    told = fp.mutual_information(case.dense, case.plain, attribute=case.matrix)
    by_hand = fp.mutual_information(*_by_hand(case, case.matrix))
    return [
        average("collusion", found, off),
        average("attribute", told, off),
        average("by hand", by_hand, off),
    ]


def _posteriors(case):
    """Averages over posteriors, which are merged within 1e-12."""
    seen = fp.hyper(case.dense, case.plain)
    guessed = float(seen.outer @ seen.inners.max(axis=1))
    known = fp.posterior_vulnerability(case.dense, case.plain)
    return [Span("hyper", guessed - 1e-10, guessed + 1e-10), level("vulnerability", known)]


def _uncertainty(case):
    seen = fp.hyper(case.dense, case.plain)
    left = 1.0 - seen.inners[:, case.pmf > 0.0].min(axis=1)
    by_hand = -math.log(left.max())
    room = 1e-10 / left.max()
    left = fp.remaining_uncertainty(case.channel, case.prior)
    return [
        Span("by hand", by_hand - room, by_hand + room),
        Span("remaining_uncertainty", left, left * (1 + LEVEL) + room),
    ]


# Other neighbours.


def _pairs(case):
    """Return some pairs of databases, each once."""
    every = list(combinations(range(case.size), 2))
    rng = np.random.default_rng(int(case.share * 2**53))
    chosen = rng.permutation(len(every))[: 1 + int(rng.integers(4))]
    return [every[k] for k in sorted(chosen)]


def _distances(case):
    rows = np.array(case.space.rows(np.arange(case.size)))
    return (rows[:, None] != rows[None]).sum(axis=2)


def _near_pairs(case, k):
    """Return the pairs that differ in up to k records."""
    far = _distances(case)
    return [(x, z) for x, z in combinations(range(case.size), 2) if far[x, z] <= k]


def _edges(case, pairs):
    """Return a graph as a matrix of zeros and ones."""
    edges = np.zeros((case.size, case.size), dtype=bool)
    for x, z in pairs:
        edges[x, z] = edges[z, x] = True
    return edges


def _measures(case):
    """Yield (name, a measure of a channel with options, its value for two rows)."""
    epsilon, pmf = min(case.epsilon, 3.0), case.pmf

    def identified(x, z):
        both = pmf[x] + pmf[z]
        pair = [pmf[x] / both, pmf[z] / both] if both > 0.0 else [1.0, 0.0]
        return fp.identifiability_level(case.matrix[[x, z]], pair)

    yield (
        "dp_level",
        lambda channel, prior, **given: fp.dp_level(channel, **given),
        lambda x, z: fp.dp_level(case.matrix[[x, z]]),
    )
    yield (
        "hockey_stick",
        lambda channel, prior, **given: fp.hockey_stick(channel, epsilon, **given),
        lambda x, z: fp.hockey_stick(case.matrix[[x, z]], epsilon),
    )
    yield "identifiability_level", fp.identifiability_level, identified


def _measure_of(case):
    """Return one of the measures; identifiability is infinite if some database is impossible."""
    every = list(_measures(case))
    return every[draw_of(case) % (3 if case.positive else 2)]


def _neighbours(case):
    """Given pairs of neighbours, in all forms, and one by one."""
    pairs, (name, measure, alone) = _pairs(case), _measure_of(case)
    off = case.sums + 8 * UNIT
    found = [
        level(
            f"{name}, {way}", measure(channel, prior, neighbours=_edges(case, pairs)), moved + off
        )
        for way, channel, prior, moved in ways(case)
    ]
    if len(pairs) != case.size:  # a square table would be a matrix of distances
        listed = measure(case.dense, case.plain, neighbours=np.array(pairs))
        found.append(level(f"{name}, list of pairs", listed, off + case.rounded + case.weighed))
    worst = max(alone(x, z) for x, z in pairs)
    return [*found, level(f"{name}, pair by pair", worst, off + case.rounded + case.weighed)]


def _groups(case):
    """Neighbours that differ in up to k records: structured, by the graph, and pair by pair."""
    k, (name, measure, alone) = 1 + draw_of(case) // 7 % case.n, _measure_of(case)
    off = case.sums + 8 * UNIT
    pairs = _near_pairs(case, k)
    found = [
        level(f"{name}, {way}", measure(channel, prior, group=k), moved + off)
        for way, channel, prior, moved in ways(case)
    ]
    moved = off + case.rounded + case.weighed
    steps = _edges(case, _near_pairs(case, 1))
    asked = {
        "pairs": measure(case.dense, case.plain, neighbours=_edges(case, pairs)),
        "steps": measure(case.dense, case.plain, neighbours=steps, group=k),
        "pair by pair": max((alone(x, z) for x, z in pairs), default=0.0),
    }
    if k == case.n and name == "dp_level":
        asked["strong_dp_level"] = fp.strong_dp_level(case.channel)
    return found + [level(f"{name}, {way}", value, moved) for way, value in asked.items()]


def _by_distance(case):
    """Levels for each unit of distance."""
    far = _distances(case) * (0.5 + case.share)
    pairs = _near_pairs(case, case.n)
    worst = max((fp.dp_level(case.matrix[[x, z]]) / far[x, z] for x, z in pairs), default=0.0)
    off = 2 * (case.sums + 8 * UNIT)
    return [
        level("structured", fp.dp_level(case.channel, neighbours=far), off),
        level("dense", fp.dp_level(case.dense, neighbours=far), off + 2 * case.rounded),
        Span("pair by pair", *near(worst), off + 2 * case.rounded)
        if worst < 1e300
        else level("pair by pair", worst),
    ]


def _group_profiles(case):
    """The profile of groups, and the one of k steps of one record above it."""
    k, e = 1 + draw_of(case) % case.n, min(case.epsilon, 3.0)
    off = (case.sums + 4 * UNIT) * (1.0 + math.exp(e))
    given = fp.hockey_stick(case.dense, e, group=k)
    found = PrivacyProfile.of(case.dense, group=k).delta(e)
    steps = PrivacyProfile.of(case.dense).group(k).delta(e)
    return [
        Span("hockey_stick", given - off - LEVEL * given, given),
        Span("of(group=k)", found.lower - off, found.upper + off),
        above("of(...).group(k)", steps.upper + off),
    ]


def _profiles_of_neighbours(case):
    pairs, e = _edges(case, _pairs(case)), min(case.epsilon, 3.0)
    off = (case.sums + 4 * UNIT) * (1.0 + math.exp(e))
    given = fp.hockey_stick(case.dense, e, neighbours=pairs)
    found = PrivacyProfile.of(case.dense, neighbours=pairs).delta(e)
    return [
        Span("hockey_stick", given - off - LEVEL * given, given),
        Span("profile", found.lower - off, found.upper + off),
    ]


def _levels_at_delta(case):
    pairs = _edges(case, _pairs(case))
    given = fp.hockey_stick_epsilon(case.dense, case.delta, neighbours=pairs)
    found = PrivacyProfile.of(case.dense, neighbours=pairs).epsilon(case.delta)
    return [level("hockey_stick_epsilon", given), level("profile", found)]


# Ledgers.


def _ledgers(case):
    """Two steps, charged at once or in turn, read again, and as a profile."""
    budget = {"approximate-dp": (1e9, case.delta), "dp": 1e9}
    one, two = (Ledger(budget, relation="replace-one") for _ in range(2))
    try:
        one.spend(case.dense, count=2)
        two.spend(case.dense)
        two.spend(case.dense)
    except fp.BudgetExceeded:
        return []
    drawn = PrivacyProfile.realised(case.dense).self_compose(2).epsilon(case.delta).upper
    read = Ledger.from_json(two.to_json()).spent
    level_of_one = fp.realised_level(case.dense)
    return [
        *same({"read": (read, two.spent)}),
        *same({"ledger": (one.spent["approximate-dp"], drawn)}),
        *same({"in turn": (two.spent["approximate-dp"], drawn)}),
        level("dp at once", one.spent["dp"]),
        level("dp in turn", two.spent["dp"]),
        level("twice the level", 2.0 * level_of_one),
    ]


def _drawn(case):
    return [
        level("realised_level", fp.realised_level(case.channel)),
        level("profile", PrivacyProfile.realised(case.channel).epsilon(0.0)),
    ]


def _calibrated(case):
    """The smallest noise meets the guarantee, and less noise does not."""
    e, delta = min(max(case.epsilon, 1e-3), 10.0), min(max(case.delta, 1e-9), 0.5)
    found = calibrate(PrivacyProfile.gaussian, epsilon=e, delta=delta)
    enough = PrivacyProfile.gaussian(found.upper).delta(e)
    less = PrivacyProfile.gaussian(found.lower * (1.0 - 1e-9)).delta(e)
    return [
        Span("at the smallest noise", enough.lower, enough.upper),
        Span("delta", delta, delta),
        Span("with less noise", -math.inf, less.upper),
    ]


# Hulls of priors.


def _hull_of_one(case):
    made = fp.PriorSet.hull([case.pmf])
    return [
        level("prior", fp.pml_level(case.dense, case.plain), 8 * case.size * UNIT),
        searched("hull", fp.pml_level(case.dense, made), 8 * case.size * UNIT),
    ]


def _group_over_sets_of_one(case):
    """A group over sets that hold one prior leaks as much as under that prior."""
    group, pmf, off = _group(case), case.pmf, 4 * _off(case) + SEARCHED
    rows = group if len(group) > 1 else group[0]
    made = {
        "box": fp.PriorSet.box(pmf, pmf),
        "hull": fp.PriorSet.hull([pmf]),
        "total variation": fp.PriorSet.total_variation(pmf, 0.0),
    }
    found = [level("prior", fp.pml_level(case.dense, case.plain, row=rows), off)]
    for name, priors in made.items():
        found.append(searched(name, fp.pml_level(case.dense, priors, row=rows), off))
    return found


def _group_over_all_priors(case):
    """A group leaks less over products than over all priors, and no more than the database."""
    group, strong = _group(case), fp.leakage_capacity(case.channel)
    product, every = fp.PriorSet.product(case.space), fp.PriorSet.all(case.size)
    off = 4 * _off(case)
    return [
        level("over products", fp.pml_level(case.channel, product, row=group), off),
        level("over all", fp.pml_level(case.channel, every, row=group), off),
        level("leakage_capacity", strong, off),
    ]


def _hull_of_points(case):
    made = fp.PriorSet.hull(np.eye(case.size))
    return [
        level("leakage_capacity", fp.leakage_capacity(case.dense)),
        searched("hull", fp.pml_level(case.dense, made)),
    ]


def _hulls_in_order(case):
    off = 8 * case.size * UNIT
    mixed = (1.0 - case.share) * case.pmf + case.share / case.size
    made = fp.PriorSet.hull([case.pmf, np.full(case.size, 1.0 / case.size)])
    return [
        level("mixture", fp.pml_level(case.dense, fp.Dense(mixed / mixed.sum(), case.sizes)), off),
        searched("hull", fp.pml_level(case.dense, made), off),
        searched("all", fp.pml_level(case.dense, fp.PriorSet.all(case.size)), off),
    ]


def _information_over_a_hull(case):
    given = fp.individual_capacity(case.dense, fp.PriorSet.hull([case.pmf]), time_limit=SECONDS)
    off = case.sums + 8 * case.size * UNIT
    return [
        average("information", fp.mutual_information(case.dense, case.plain), off),
        level("hull", given, off),
    ]


# Programs with other neighbours.


def _allowed(case):
    positive = case.positive and case.pmf.min() > 1e-9
    return positive and case.size <= 6 and 1e-9 < case.epsilon < 30


def _program_neighbours(case):
    given = {"neighbours": _edges(case, _near_pairs(case, 1))}
    return [
        optimum("default", fp.solve_pd_dp(case.plain, case.epsilon)),
        optimum("given", fp.solve_pd_dp(case.plain, case.epsilon, **given)),
        optimum("group of one", fp.solve_pd_dp(case.plain, case.epsilon, group=1)),
        optimum("delta of 0", fp.solve_pd_dp(case.plain, case.epsilon, delta=0.0)),
    ]


def _program_groups(case):
    k = 1 + draw_of(case) % case.n
    pairs = _edges(case, _near_pairs(case, k))
    solved = fp.solve_pd_dp(case.plain, case.epsilon, group=k)
    reached = fp.dp_level(solved.channel, group=k)
    return [
        optimum("group", solved),
        optimum("pairs", fp.solve_pd_dp(case.plain, case.epsilon, neighbours=pairs)),
        *same({"level of the group": (reached <= case.epsilon, True)}),
    ]


def _program_delta(case):
    solved = fp.solve_pd_dp(case.plain, case.epsilon, delta=case.delta)
    reached = fp.hockey_stick(solved.channel, case.epsilon)
    strict = fp.solve_pd_dp(case.plain, case.epsilon)
    return [
        Span("with delta", solved.bound, solved.value),
        above("without", strict.value),
        *same({"delta of the channel": (reached <= case.delta, True)}),
    ]


def _several(case):
    return case.size > 1


QUANTITIES = {
    # groups of records and attributes
    "information of a group": Quantity(
        _about_group(fp.row_information, fp.mutual_information, average),
        share=0.3, fits=is_ordinary, moved=by_root,
    ),
    "leakage of a group": Quantity(
        _about_group(fp.pml_level, fp.pml_level, level), share=0.3, fits=is_ordinary
    ),
    "maximal leakage of an attribute": Quantity(
        _attribute_leakage, share=0.3, fits=is_ordinary
    ),
    "leakage factor of a group": Quantity(_share_of_group, share=0.1, fits=is_ordinary),
    "information of a joint": Quantity(
        _joint_information, share=0.2, fits=is_ordinary, moved=by_root
    ),
    "correlation of a joint": Quantity(_joint_correlation, share=0.1, fits=is_ordinary),
    "constant of a joint": Quantity(
        _joint_constants, share=0.004, fits=is_ordinary, moved=by_root
    ),
    "information of two outputs": Quantity(
        _colluding, share=0.05, fits=is_ordinary, moved=by_root
    ),
    "information of another output": Quantity(
        _alone, share=0.05, fits=is_ordinary, moved=by_root
    ),
    "vulnerability by posteriors": Quantity(_posteriors, share=0.2, fits=is_ordinary),
    "uncertainty by posteriors": Quantity(
        _uncertainty, share=0.2, fits=lambda c: c.ordinary and not c.plain.is_certain
    ),
    # other neighbours
    "levels of given neighbours": Quantity(
        _neighbours, share=0.3, fits=lambda c: c.ordinary and c.size > 1
    ),
    "levels of groups": Quantity(_groups, share=0.3, fits=is_ordinary),
    "levels by distance": Quantity(_by_distance, share=0.2, fits=is_ordinary),
    "profiles of groups": Quantity(_group_profiles, share=0.1, ordered=True),
    "profiles of given neighbours": Quantity(_profiles_of_neighbours, share=0.1, fits=_several),
    "epsilon of given neighbours": Quantity(
        _levels_at_delta, share=0.05, fits=lambda c: c.size > 1 and c.sums == 0.0
    ),
    # ledgers
    "ledger of two steps": Quantity(
        _ledgers, share=0.03, fits=lambda c: 0.0 < c.delta < 1.0
    ),
    "level as drawn": Quantity(_drawn, share=0.1),
    "calibrated noise": Quantity(_calibrated, share=0.02, ordered=True),
    # hulls of priors
    "leakage over a hull of one": Quantity(_hull_of_one, share=0.1, fits=is_ordinary),
    "leakage of a group over one prior": Quantity(
        _group_over_sets_of_one, share=0.05,
        fits=lambda c: is_ordinary(c) and c.pmf[c.pmf > 0].min() > 1e-6,
    ),
    "leakage of a group over sets in order": Quantity(
        _group_over_all_priors, share=0.1, ordered=True, fits=is_ordinary
    ),
    "leakage over a hull of points": Quantity(_hull_of_points, share=0.1, fits=is_ordinary),
    "leakage over hulls in order": Quantity(
        _hulls_in_order, share=0.1, ordered=True, fits=is_ordinary
    ),
    "information over a hull": Quantity(
        _information_over_a_hull, share=0.03, moved=by_root,
        fits=lambda c: c.ordinary and c.n == 1 and c.size > 1,
    ),
    # programs
    "program with given neighbours": Quantity(_program_neighbours, share=0.02, fits=_allowed),
    "program for groups": Quantity(_program_groups, share=0.02, fits=_allowed),
    "program with delta": Quantity(_program_delta, share=0.01, ordered=True, fits=_allowed),
}  # fmt: skip
