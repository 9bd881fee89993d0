"""The programs of a prior, and the proof that a solution is optimal in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._structure.types import Blocks, types_of
from fastpriv.design.common import symmetries
from fastpriv.design.exact.numbers import integers, is_at_most_exp
from fastpriv.design.exact.program import Program, build
from fastpriv.design.exact.simplex import Simplex
from fastpriv.design.exact.vertex import Vertex
from fastpriv.errors import SolverFailure
from fastpriv.priors import Distribution, Exchangeable, Markov, Product

if TYPE_CHECKING:
    from fastpriv.design.exact.solution import ExactSolution


def programs_of(prior: Distribution, joint: bool) -> tuple[str, list[Program]]:
    """Return the way that fits the prior, and its programs: one per distinct row of a product."""
    if isinstance(prior, Product):
        return "rows", [
            _over_databases(integers(law), (len(law),), joint) for law in prior.distinct
        ]
    if isinstance(prior, Exchangeable):
        types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
        table = prior.weights
        weights = integers(float(table[kind[0][1:]]) for kind in types.counts)
        return "types", [build(types, weights, joint)]
    listed = prior.as_dense("the exact program", 1 << 12)
    exact = _chain(prior) if isinstance(prior, Markov) else integers(listed.probabilities())
    return "dense", [_over_databases(exact, prior.space.sizes, joint)]


def _chain(prior: Markov) -> list[int]:
    """Return the probabilities of a chain times a number that makes all of them whole.

    Every law is divided by its exact sum: products of floats may be rounded, or underflow.
    """
    steps = [integers(row) for row in prior.transition]
    whole = math.lcm(*map(sum, steps))
    steps = [[step * (whole // sum(row)) for step in row] for row in steps]
    paths = list(enumerate(integers(prior.initial)))
    for _ in range(prior.space.n - 1):
        paths = [(b, mass * step) for a, mass in paths for b, step in enumerate(steps[a])]
    return [mass for _, mass in paths]


def _over_databases(exact: list[int], sizes: tuple[int, ...], joint: bool) -> Program:
    cube = np.array(exact, dtype=object).reshape(sizes)
    types = types_of(symmetries(cube))
    weights = [0] * len(types.counts)
    rows = np.indices(sizes).reshape(len(sizes), -1).T
    for t, weight in zip(types.number(rows).tolist(), exact, strict=True):
        weights[t] += weight
    return build(types, weights, joint)


def total(prior: Distribution, vertices: Sequence[Vertex]) -> Fraction:
    """Return the value of a solution: the sum over the rows of a product."""
    counts = prior.multiplicities().tolist() if isinstance(prior, Product) else [1]
    return sum((c * v.value for c, v in zip(counts, vertices, strict=True)), Fraction(0))


def value_at(solution: ExactSolution, ratio: Fraction) -> Fraction:
    """Return the optimum at a ratio near that of a solution, started from its rays."""
    if ratio == solution.ratio:
        return solution.value
    vertices = [
        Vertex.of(v.program, ratio, Simplex(v.program, ratio, v.rays).optimum())
        for v in solution.vertices
    ]
    return total(solution.prior, vertices)


def verify(solution: ExactSolution) -> None:
    """Prove a solution from its numbers: the programs are built again from the prior."""
    _, programs = programs_of(solution.prior, solution.notion == "identifiability")
    if not is_at_most_exp(solution.ratio, solution.epsilon):
        raise SolverFailure("verification failed: the ratio is above e^epsilon")
    if len(programs) != len(solution.vertices):
        raise SolverFailure("verification failed: there is not one vertex for every program")
    for program, vertex in zip(programs, solution.vertices, strict=True):
        if vertex.ratio != solution.ratio:
            raise SolverFailure("verification failed: a vertex has another ratio")
        replace(vertex, program=program).verify()
    if total(solution.prior, solution.vertices) != solution.value:
        raise SolverFailure("verification failed: the value is not that of the vertices")
