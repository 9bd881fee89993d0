"""What an exact program returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv.channels import AbstractChannel
from fastpriv.design.exact.numbers import ratio_above
from fastpriv.design.exact.proof import value_at, verify
from fastpriv.design.exact.vertex import Vertex
from fastpriv.priors import Distribution, Product

__all__ = ["ExactSolution"]

#: Most entries of a matrix of fractions.
_MAX_FRACTIONS = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class ExactSolution:
    """An optimum in rational arithmetic, with everything that proves it.

    The prior is taken as the exact values of its floats divided by their sum (of a Markov chain,
    those of its laws), and e^epsilon as the rational number ``ratio``. At that ratio nothing is
    approximate.

    Attributes
    ----------
    prior : Distribution
        What was given.
    epsilon : float
        The level that was asked for.
    notion : {"dp", "identifiability"}
        Of which program this is the optimum.
    ratio : Fraction
        Stands for e^epsilon: at most that, by a relative distance of at most
        1e-15 min(1, epsilon).
    value : Fraction
        The least expected number of changed rows of any mechanism whose ratios are at most
        ``ratio``.
    channel : channel
        A mechanism in floats, rounded inwards: its own level, as ``fastpriv`` measures it, is at
        most epsilon.
    method : {"rows", "types", "dense"}
        One program per distinct row, one on types, or one over databases.
    vertices : tuple of Vertex
        The optimal vertex of every program that was solved, with its multipliers.

    Notes
    -----
    Why a vertex is a pattern of powers, and why the stored numbers prove it optimal, is on the
    page on exact optima in the documentation.

    Examples
    --------
    >>> import fastpriv as fp
    >>> best = fp.solve_pd_dp(fp.Dense([0.5, 0.25, 0.125, 0.125], [2, 2]), 0.5, exact=True)
    >>> best
    ExactSolution(value=0.6144949955, ratio=54516085/33065677, notion='dp', method='dense')
    >>> best.verify(), sum(best.fractions()[0])
    (True, Fraction(1, 1))
    """

    prior: Distribution
    epsilon: float
    notion: str
    ratio: Fraction
    value: Fraction
    channel: AbstractChannel
    method: str
    vertices: tuple[Vertex, ...]

    @cached_property
    def powers(self) -> tuple[tuple[Mapping[object, int], ...], ...]:
        """The integer powers of e^epsilon inside each component of every output.

        For every output a tuple of components, empty where the output never occurs. Within a
        component, p(y|x) (for identifiability p(x, y)) is one scale times e^(epsilon k), and the
        component maps x to k, the least k being 0. Outputs and inputs are numbered databases
        (method "dense"); values of a row, for one distinct row after the other ("rows"); or types
        of outputs in the order of their counts, with inputs given by how many rows hold v in the
        output and s in the input, ``((v=0: s=0, 1, ...), (v=1: ...), ...)`` ("types").
        """
        return tuple(
            tuple(
                {name: k for u, k in component.items() for name in names[u]}
                for component in vertex.components[kind]
            )
            for vertex in self.vertices
            for kind, names in self._named_outputs(vertex)
        )

    def _named_outputs(self, vertex: Vertex) -> list[tuple[int, dict[int, list[object]]]]:
        """Return the type of every output, and the names of the inputs in each class."""
        program = vertex.program
        if self.method == "types":
            m = program.types.blocks.sizes[0]
            return [
                (
                    k,
                    {
                        u: [tuple(map(tuple, classes.pair_counts(u, m).tolist()))]
                        for u in range(len(classes.row))
                    },
                )
                for k, classes in enumerate(program.classes)
            ]
        named = []
        for kind, numbers in _placed(vertex):
            names: dict[int, list[object]] = {u: [] for u in range(len(program.classes[kind].row))}
            for x, u in enumerate(numbers.tolist()):
                names[u].append(x)
            named.append((kind, names))
        return named

    def fractions(self) -> list[list[Fraction]]:
        """Return p(y|x) as exact fractions, a list for every database x.

        Rows sum to exactly one, and no two neighbours' entries (for identifiability, times the
        prior) have a ratio above ``ratio``. Cost N^2 fractions; ``TooLarge`` where that is too
        many.
        """
        size = self.prior.space.size
        instead = "read the vertices, or the floats of .channel"
        check.fits(size**2, "the matrix of fractions", instead, _MAX_FRACTIONS)
        tables = [_table(vertex) for vertex in self.vertices]
        if not isinstance(self.prior, Product):
            return tables[0]
        matrix = [[Fraction(1)]]
        for k in self.prior.assignment.tolist():
            matrix = [[a * b for a in row for b in part] for row in matrix for part in tables[k]]
        return matrix

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Levels (low, high) between which the pattern stays optimal, rounded inwards.

        The pattern is the basis of rays: which powers, of which outputs. Its scales and its
        multipliers are rational functions of e^epsilon; each end is a root of one of them. Needs
        python-flint. ``TooLarge`` where the polynomials would be hopelessly long.
        """
        from fastpriv.design.exact.extent import extent

        if self.epsilon == 0.0:
            return 0.0, 0.0
        ends = [extent(vertex.program, vertex.rays, self.ratio) for vertex in self.vertices]
        low = max(low.above for low, _ in ends)
        high = min(high.below for _, high in ends)
        return min(low, self.epsilon), max(high, self.epsilon)

    @cached_property
    def bound(self) -> Fraction:
        """The optimum at a rational number just above e^epsilon.

        e^epsilon itself is irrational; the optimum there is between ``bound`` and ``value``,
        some 1e-15 apart.
        """
        return value_at(self, ratio_above(self.epsilon))

    def verify(self) -> bool:
        """Prove the optimum again in exact arithmetic, from the stored numbers alone.

        Checks that the mechanism is feasible, that the multipliers are, and that both have the
        same value: then neither can be improved. Returns True, or raises ``SolverFailure``.
        """
        verify(self)
        return True

    def __repr__(self) -> str:
        ratio = str(self.ratio)
        ratio = ratio if len(ratio) <= 40 else f"{float(self.ratio):.6g}"
        return (
            f"ExactSolution(value={float(self.value):.10g}, ratio={ratio}, "
            f"notion={self.notion!r}, method={self.method!r})"
        )


def _placed(vertex: Vertex) -> list[tuple[int, Ints]]:
    """For every output y in order, its type and the class of every database against it."""
    from fastpriv.spaces import Space

    types = vertex.program.types
    sizes = np.empty(sum(map(len, types.blocks.rows)), dtype=np.int64)
    for rows, m in zip(types.blocks.rows, types.blocks.sizes, strict=True):
        sizes[list(rows)] = m
    space = Space(sizes)
    x = space.rows(np.arange(space.size))
    kinds = types.number(x).tolist()
    return [
        (kind, vertex.program.classes[kind].number(x, x[y], types.blocks))
        for y, kind in enumerate(kinds)
    ]


def _table(vertex: Vertex) -> list[list[Fraction]]:
    """Return p(y|x) of every pair of databases."""
    columns = [
        [vertex.chances[kind][u] for u in numbers.tolist()] for kind, numbers in _placed(vertex)
    ]
    return [list(row) for row in zip(*columns, strict=True)]
