"""The exact optimum at one level: a start from floats, the simplex method, a channel in floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, roundoff
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import expand
from fastpriv.channels import AbstractChannel, Channel, HammingChannel, ProductChannel
from fastpriv.channels.types import TypeChannel
from fastpriv.design.closed_forms import constant_mechanism, rounding_margin
from fastpriv.design.exact.arithmetic import is_at_most_exp, level_bounds, ratio_below
from fastpriv.design.exact.program import IntegerProgram, Output, check_size, programs_of
from fastpriv.design.exact.simplex import (
    Certificate,
    OptimalBasis,
    Pattern,
    Ray,
    Simplex,
    complete,
    components,
    hamming_rays,
    normal,
    route,
)
from fastpriv.design.exact.solution import ExactSolution, Vertex, total_value
from fastpriv.errors import Infeasible, SolverFailure, TooLarge, described
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.identifiability import posterior_level
from fastpriv.priors import Distribution, Product


def solve_exact(prior: Distribution, epsilon: float, joint: bool) -> ExactSolution:
    """Solve PD-DP, or PD-I if ``joint``, at the rational number just below e^epsilon."""
    method, programs = programs_of(prior, joint)
    ratio = _ratio(prior, programs, epsilon, joint)
    for program in programs:
        check_size(program, ratio)
    known = _closed_form(prior, epsilon, joint)
    vertices = tuple(vertex_at(program, ratio, epsilon, known) for program in programs)
    value = total_value(prior, vertices)
    channel = _channel(prior, vertices, epsilon, joint, method)
    notion = "identifiability" if joint else "dp"
    return ExactSolution(prior, epsilon, notion, ratio, value, channel, method, vertices)


def _ratio(
    prior: Distribution, programs: Sequence[IntegerProgram], epsilon: float, joint: bool
) -> Fraction:
    """Return the ratio used for e^epsilon; for PD-I it is at least the prior's own ratio."""
    return ratio_below(epsilon, least_ratio(prior, programs, epsilon) if joint else Fraction(0))


def least_ratio(
    prior: Distribution, programs: Sequence[IntegerProgram], epsilon: float
) -> Fraction:
    """Return e^eps_X exactly, the smallest ratio of PD-I and a lower bound on e^epsilon."""
    spread = [_spread(program) for program in programs]
    if None in spread:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: some "
            "databases have probability zero and others do not, so every level is infinite. "
            "Give every database a positive probability."
        )
    least = max((s for s in spread if s is not None), default=Fraction(1))
    if not is_at_most_exp(least, epsilon):
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: the prior alone "
            f"has epsilon_x = {described(level_bounds(least)[1])}, which is the smallest possible. "
            "Ask for that level or a larger one."
        )
    return least


def _spread(program: IntegerProgram) -> Fraction | None:
    """Return the largest ratio of probabilities of two neighbours; None if one is zero."""
    if len(program.totals) > 1 and not min(program.totals):
        return None
    pairs = {(output.row[u], output.row[t]) for output in program.outputs for u, t in output.arcs}
    totals = program.totals
    return max((Fraction(totals[s], totals[t]) for s, t in pairs), default=Fraction(1))


def _closed_form(prior: Distribution, epsilon: float, joint: bool) -> bool:
    """Whether a theorem gives the optimum, so that no start from floats is needed."""
    with suppress(TooLarge):
        return epsilon >= (prior.epsilon_tilde() if joint else prior.epsilon_hat())
    return False


def vertex_at(program: IntegerProgram, ratio: Fraction, epsilon: float, known: bool) -> Vertex:
    """Solve one program at one ratio."""
    if ratio == 1:
        return Vertex.of(program, ratio, _flat(program))
    rays: list[Ray] = []
    if not known and program.size > 1:
        with suppress(SolverFailure):  # then the exact simplex starts by itself
            rays = float_rays(program, epsilon, math.inf)
    basis = complete(program, ratio, rays)
    return Vertex.of(program, ratio, Simplex(program, ratio, basis).optimum())


def _flat(program: IntegerProgram) -> OptimalBasis:
    """Return the optimum at ratio one, where every output is equally likely for all databases.

    The best output has all the mass. Its cost per database is the multiplier of each total. The
    rest of any other output balances along neighbours, up to a constant.
    """
    costs = []
    for output in program.outputs:
        terms = zip(output.row, output.count, output.distance, strict=True)
        costs.append(sum(program.prices[t] * c * d for t, c, d in terms))
    sizes = [program.types.size(k) for k in range(len(costs))]
    best = min(range(len(costs)), key=lambda k: Fraction(costs[k], sizes[k]))
    numerators, output = [0] * program.size, program.outputs[best]
    for t, count, d in zip(output.row, output.count, output.distance, strict=True):
        numerators[t] += program.prices[t] * count * d
    certificates = []
    for output in program.outputs:
        terms = zip(output.row, output.count, output.distance, strict=True)
        g = [c * (sizes[best] * program.prices[t] * d - numerators[t]) for t, c, d in terms]
        scale = len(g)
        flow, cut = route(output.arcs, [n * scale - sum(g) for n in g])
        if cut is not None:
            raise SolverFailure(
                "the graph of databases is not connected. Solve without exact=True, and please "
                "report this program."
            )
        certificates.append(Certificate((0,) * len(g), flow, sum(g), scale))
    ray = Ray(best, (0,) * len(program.outputs[best].row))
    scales = [program.totals[0]], sizes[best]
    return OptimalBasis((ray,), scales, (numerators, sizes[best]), tuple(certificates), 0)


def _channel(
    prior: Distribution, vertices: Sequence[Vertex], epsilon: float, joint: bool, method: str
) -> AbstractChannel:
    """Return a channel of floats whose measured level is at most epsilon."""
    sizes = prior.space.sizes
    if not joint and epsilon > 0 and all(_is_hamming(vertex) for vertex in vertices):
        return HammingChannel(
            len(sizes), sizes, max(0.0, epsilon - rounding_margin(epsilon, len(sizes)))
        )

    def made(parts: list[Entries]) -> AbstractChannel:
        if method == "types":
            program = vertices[0].program
            return TypeChannel(program.types, list(program.classes), parts[0])
        matrices = [
            expand(vertex.program.types, list(vertex.program.classes), entries)
            for vertex, entries in zip(vertices, parts, strict=True)
        ]
        if isinstance(prior, Product):
            kernels = RowKernels([RowKernel(matrix) for matrix in matrices], prior.assignment)
            return ProductChannel.of(kernels)
        return Channel(matrices[0], prior.space)

    def holds(parts: list[Entries]) -> bool:
        channel = made(parts)
        level = posterior_level(channel, prior) if joint else neighbour_level(channel)
        return level <= epsilon

    parts = _rounded_inwards(vertices, epsilon, prior.space.n, holds)
    if parts is not None:
        return made(parts)
    constant = constant_mechanism(prior).channel
    return Channel(constant.matrix(), prior.space) if method == "dense" else constant


def _is_hamming(vertex: Vertex) -> bool:
    """Whether the optimum is randomised response itself."""
    return set(vertex.rays) == set(hamming_rays(vertex.program)) and min(vertex.scales) > 0


#: Levels between which floats distinguish the powers; beyond, use the pattern at the bound.
_LOWEST_LEVEL = 0.02
_HIGHEST_LEVEL = 9.0
#: Fractional parts of exponents closer than this belong to one component.
_CLOSE = 1e-8
#: Share of an output's mass below which it counts as unused.
_DEAD = 1e-8
#: Perturbation of the totals, so that the vertex in floats gives a whole basis.
_NUDGE = 1e-4
#: From this many variables on, an interior point with a crossover is faster than the simplex.
_FEW = 500


def float_rays(program: IntegerProgram, epsilon: float, seconds: float) -> list[Ray]:
    """Solve the program in floats and return the rays of its vertex.

    A vector v of the cone with r components is a sum of r rays: with phi = log_a v, the patterns
    floor(phi - theta), for theta equal to each fractional part of phi.
    """
    epsilon = min(max(epsilon, _LOWEST_LEVEL), _HIGHEST_LEVEL)
    try:
        masses = _float_vertex(program, epsilon, seconds, _NUDGE)
    except SolverFailure:  # PD-I at its smallest level has no room; try a little above
        epsilon += 4 * _NUDGE
        masses = _float_vertex(program, epsilon, seconds, _NUDGE)
    rays: list[tuple[float, Ray]] = []
    starts = np.cumsum([0, *(len(output.row) for output in program.outputs)])
    for k, output in enumerate(program.outputs):
        mass = masses[starts[k] : starts[k + 1]]
        total_value = float(mass.sum())
        if total_value <= _DEAD:
            continue
        powers = _powers(program, output, mass, epsilon)
        rays += [(total_value, Ray(k, f)) for f in _floors(output, powers)]
    rays.sort(key=lambda pair: -pair[0])
    return [ray for _, ray in rays]


def _float_vertex(program: IntegerProgram, epsilon: float, seconds: float, nudge: float) -> Floats:
    """Return the masses of all classes at a vertex that HiGHS takes for optimal.

    The variable of a class is its share of its type's total, so that equations are 1 = sum.
    """
    row, source, target = list[int](), list[int](), list[int]()
    cost, ratio = list[float](), list[float]()
    start = 0
    expense = _float_costs(program)
    logs = [math.log(n) if n else 0.0 for n in program.totals]
    for output in program.outputs:
        row += output.row
        cost += [expense[t] * d for t, d in zip(output.row, output.distance, strict=True)]
        size = [
            math.log(c) - logs[t] for t, c in zip(output.row, output.count, strict=True)
        ]  # ln of mass per unit of v
        for u, t in output.arcs:
            source.append(start + u)
            target.append(start + t)
            ratio.append(epsilon + size[u] - size[t])
        start += len(output.row)
    arcs = len(source)
    # mass(u) <= e^ratio mass(t), each row scaled by its larger coefficient.
    logs_of = np.array(ratio)
    left, right = np.exp(-np.maximum(logs_of, 0.0)), -np.exp(np.minimum(logs_of, 0.0))
    order = np.argsort(row, kind="stable")
    lengths = np.bincount(row, minlength=program.size)
    index = np.concatenate([order, np.stack([source, target], axis=1).reshape(-1)])
    entries = np.concatenate([np.ones(start), np.stack([left, right], axis=1).reshape(-1)])
    starts = np.concatenate([[0], np.cumsum(lengths), start + 2 * np.arange(1, arcs + 1)])
    totals = 1.0 + nudge * np.random.default_rng(0).random(program.size)
    lower = np.concatenate([totals, np.full(arcs, -np.inf)])
    upper = np.concatenate([totals, np.zeros(arcs)])
    rows = Rows(starts, index, entries, lower, upper)
    method = "simplex" if start < _FEW else "ipm"
    answer = minimise(np.array(cost), np.zeros(start), rows, seconds, method)
    return np.maximum(answer.values, 0.0)


def _float_costs(program: IntegerProgram) -> list[float]:
    """Return the cost per changed record of a whole type, up to a factor."""
    products = [w * n for w, n in zip(program.prices, program.totals, strict=True)]
    most = max(products)
    return [n / most for n in products] if most else [0.0] * len(products)


def _powers(program: IntegerProgram, output: Output, mass: Floats, epsilon: float) -> Floats:
    """Return exponents of the entries of one output, raised until they lie in the cone."""
    logs = np.array(
        [
            math.log(c) - math.log(program.totals[t])
            for c, t in zip(output.count, output.row, strict=True)
        ]
    )
    with np.errstate(divide="ignore"):
        powers = (np.log(mass) - logs) / epsilon
    if output.arcs:
        source, target = np.array(output.arcs).T
        while True:
            raised = powers.copy()
            np.maximum.at(raised, target, powers[source] - 1.0)
            if np.array_equal(raised, powers):
                break
            powers = raised
    return np.asarray(powers - powers.max())


def _floors(output: Output, powers: Floats) -> list[Pattern]:
    """Return floor(powers - theta) as theta passes the fractional part of every component.

    Components are lowered one at a time. There are as many patterns as components, even if two
    fractional parts are equal.
    """
    steps = [(u, t) for u, t in output.arcs if powers[u] - powers[t] > 1.0 - _CLOSE]
    place = np.array(components(len(powers), steps))
    parts = powers % 1.0
    parts = np.where(parts > 1.0 - _CLOSE, 0.0, parts)
    floors = np.floor(powers + _CLOSE).astype(np.int64)
    patterns = []
    for c in sorted(set(place.tolist()), key=lambda c: (parts[c], c)):
        if all(floors[u] <= floors[t] + 1 for u, t in output.arcs):  # but for rounding
            patterns.append(normal(floors.tolist()))
        floors[place == c] -= 1
    return patterns


#: p(y|x) of every class, for every type of output.
Entries = list[Floats]


def _rounded_inwards(
    vertices: Sequence[Vertex], epsilon: float, n: int, holds: Callable[[list[Entries]], bool]
) -> list[Entries] | None:
    """Return floats of the mechanisms for which ``holds``, None if there are none.

    First the same pattern is tried at a slightly smaller ratio. If that fails, a little of a
    mechanism that is constant in x is mixed in, and doubled until it is enough. Its outputs have
    their largest probabilities. This loosens every tight ratio except the prior's own ratios. For
    these, rows are tilted within the rounding of their sums.
    """
    margin = roundoff(64 + 8 * min(n, 64) + 8 * epsilon)
    if epsilon > 2.0 * margin:
        inside = [_shrunk(vertex, epsilon - margin) for vertex in vertices]
        moved = [entries for entries in inside if entries is not None]
        if len(moved) == len(inside) and holds(moved):
            return moved
    plain = [[np.array(list(map(float, column))) for column in v.chances] for v in vertices]
    trace = roundoff(16) / -math.expm1(-max(epsilon, ULP))
    while trace < 1.0:
        mixed = [
            _mixed(vertex.program, entries, trace, epsilon)
            for vertex, entries in zip(vertices, plain, strict=True)
        ]
        if holds(mixed):
            return mixed
        trace *= 2.0
    return None


def _shrunk(vertex: Vertex, epsilon: float) -> Entries | None:
    """Return the same rays at a smaller ratio, None if one of them would be negative."""
    if epsilon <= 0.0:
        return None
    ratio = ratio_below(epsilon)
    basis = Simplex(vertex.program, ratio, vertex.rays)
    numerators, denominator = basis.scales
    if min(numerators) < 0:
        return None
    scales = tuple(
        Fraction(n * ratio.denominator ** max(ray.pattern), denominator)
        for n, ray in zip(numerators, vertex.rays, strict=True)
    )
    moved = Vertex(vertex.program, ratio, Fraction(0), vertex.rays, scales, (), ())
    entries = [np.array(list(map(float, column))) for column in moved.chances]
    # A probability that underflows would leave a zero beside a positive number.
    if any(column.max() > 0.0 and column.min() < 2.0**-1020 for column in entries):
        return None
    return entries


def _mixed(program: IntegerProgram, entries: Entries, trace: float, epsilon: float) -> Entries:
    sizes = [program.types.size(k) for k in range(len(program.outputs))]
    tops = [float(column.max()) for column in entries]
    total_value = math.fsum(size * top for size, top in zip(sizes, tops, strict=True))
    share = min(1.0, trace * total_value)
    tilts = _tilts(program, epsilon)
    return [
        ((1.0 - share) * column + share * (top / total_value)) * tilts[list(output.row)]
        for column, top, output in zip(entries, tops, program.outputs, strict=True)
    ]


def _tilts(program: IntegerProgram, epsilon: float) -> Floats:
    """Return factors of rows close to one, smaller for more likely databases.

    Two rows whose probabilities have the ratio e^epsilon get factors 8 + 4 epsilon ulp apart.
    """
    if not program.joint:
        return np.ones(program.size)
    logs = np.array([math.log(total_value) for total_value in program.totals])
    middle = 0.5 * (logs.max() + logs.min())
    return np.asarray(1.0 + roundoff(8 + 4 * epsilon) * (middle - logs) / max(epsilon, ULP))
