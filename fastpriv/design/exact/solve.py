"""From a prior and a level to an exact optimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import expand
from fastpriv.channels import AbstractChannel, Channel, HammingChannel, ProductChannel
from fastpriv.channels.types import TypeChannel
from fastpriv.design.common import constant_mechanism, rounding_margin
from fastpriv.design.exact.flows import Certificate, route
from fastpriv.design.exact.inwards import Entries, rounded
from fastpriv.design.exact.numbers import is_at_most_exp, level_bounds, ratio_below
from fastpriv.design.exact.program import Program, check_size
from fastpriv.design.exact.proof import programs_of, total
from fastpriv.design.exact.simplex import Optimum, Ray, Simplex, complete, hamming_rays
from fastpriv.design.exact.solution import ExactSolution
from fastpriv.design.exact.start import float_rays
from fastpriv.design.exact.vertex import Vertex
from fastpriv.errors import Infeasible, SolverFailure, TooLarge, described
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.identifiability import posterior_level
from fastpriv.priors import Distribution, Product


def solve_exact(prior: Distribution, epsilon: float, joint: bool) -> ExactSolution:
    """Solve PD-DP, or PD-I where ``joint``, at the rational number just below e^epsilon."""
    method, programs = programs_of(prior, joint)
    ratio = _ratio(prior, programs, epsilon, joint)
    for program in programs:
        check_size(program, ratio)
    known = _closed_form(prior, epsilon, joint)
    vertices = tuple(vertex_at(program, ratio, epsilon, known) for program in programs)
    value = total(prior, vertices)
    channel = _channel(prior, vertices, epsilon, joint, method)
    notion = "identifiability" if joint else "dp"
    return ExactSolution(prior, epsilon, notion, ratio, value, channel, method, vertices)


def _ratio(
    prior: Distribution, programs: Sequence[Program], epsilon: float, joint: bool
) -> Fraction:
    """Return the ratio that stands for e^epsilon; PD-I must leave room for the prior's own."""
    return ratio_below(epsilon, least_ratio(prior, programs, epsilon) if joint else Fraction(0))


def least_ratio(prior: Distribution, programs: Sequence[Program], epsilon: float) -> Fraction:
    """Return e^eps_X exactly: the least ratio of PD-I, which e^epsilon must not be below."""
    spread = [_spread(program) for program in programs]
    if None in spread:
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: it has "
            "databases of probability zero beside possible ones, so no epsilon will do"
        )
    least = max((s for s in spread if s is not None), default=Fraction(1))
    if not is_at_most_exp(least, epsilon):
        raise Infeasible(
            f"no mechanism has identifiability {described(epsilon)} for {prior!r}: the prior alone "
            f"has epsilon_x = {described(level_bounds(least)[1])}, which is the least possible"
        )
    return least


def _spread(program: Program) -> Fraction | None:
    """Largest ratio of the probabilities of two neighbours; None where one of them is zero."""
    if len(program.totals) > 1 and not min(program.totals):
        return None
    pairs = {(output.row[u], output.row[t]) for output in program.outputs for u, t in output.arcs}
    totals = program.totals
    return max((Fraction(totals[s], totals[t]) for s, t in pairs), default=Fraction(1))


def _closed_form(prior: Distribution, epsilon: float, joint: bool) -> bool:
    """Whether E_d, or E_i, is known to be optimal, so that floats need not be asked."""
    with suppress(TooLarge):
        return epsilon >= (prior.epsilon_tilde() if joint else prior.epsilon_hat())
    return False


def vertex_at(program: Program, ratio: Fraction, epsilon: float, known: bool) -> Vertex:
    """Solve one program at one ratio."""
    if ratio == 1:
        return Vertex.of(program, ratio, _flat(program))
    rays: list[Ray] = []
    if not known and program.size > 1:
        with suppress(SolverFailure):  # then the exact simplex finds its own way
            rays = float_rays(program, epsilon, math.inf)
    basis = complete(program, ratio, rays)
    return Vertex.of(program, ratio, Simplex(program, ratio, basis).optimum())


def _flat(program: Program) -> Optimum:
    """Return the optimum at ratio one, where every output is equally likely for all databases.

    The best output alone has all the mass. Its cost per database is the multiplier of each
    total; what is left of any other output balances along neighbours, but for a constant.
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
            raise SolverFailure("the graph of databases is not connected")
        certificates.append(Certificate((0,) * len(g), flow, sum(g), scale))
    ray = Ray(best, (0,) * len(program.outputs[best].row))
    scales = [program.totals[0]], sizes[best]
    return Optimum((ray,), scales, (numerators, sizes[best]), tuple(certificates), 0)


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

    parts = rounded(vertices, epsilon, prior.space.n, holds)
    if parts is not None:
        return made(parts)
    constant = constant_mechanism(prior).channel
    return Channel(constant.matrix(), prior.space) if method == "dense" else constant


def _is_hamming(vertex: Vertex) -> bool:
    """Whether the optimum is E_d itself."""
    return set(vertex.rays) == set(hamming_rays(vertex.program)) and min(vertex.scales) > 0
