"""The privacy-distortion programs in integers, from a prior.

For every output y a vector v_y over databases lies in the cone v(x) <= a v(x') of neighbours, a =
e^epsilon. The vectors add up to given totals, at minimum cost. Databases and outputs are grouped
into types by the permutations of records that leave the prior unchanged. Without symmetry, every
database is a type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from fastpriv._structure.counts import compositions
from fastpriv._structure.types import Blocks, Classes, Types, classes_against, types_of
from fastpriv.design.exact.arithmetic import whole_numbers
from fastpriv.design.reductions import swappable_rows
from fastpriv.errors import TooLarge, short
from fastpriv.priors import Distribution, Exchangeable, Markov, Product

#: Most pairs of a database and an output, after symmetry.
MAX_PAIRS = 20_000
#: Most bits of the numerators that a vertex may have.
MAX_BITS = 2_000_000


@dataclass(frozen=True)
class Output:
    """The classes of databases for one output, and the pairs of neighbours among them.

    Attributes
    ----------
    row : tuple of int
        Type of the databases of each class.
    count : tuple of int
        How many outputs of this type make the class, for one database.
    distance : tuple of int
        Hamming distance of the databases from the output.
    arcs : tuple of pairs (u, t)
        Classes of neighbours: v(u) <= a v(t).
    """

    row: tuple[int, ...]
    count: tuple[int, ...]
    distance: tuple[int, ...]
    arcs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """PD-DP (``joint`` False) or PD-I in the joint distribution (``joint`` True), in integers.

    Over all outputs and classes u of databases of type t, the sum of count(u) v(u) is
    ``totals[t]``. The cost is ``unit`` times the sum of price[t] count(u) distance(u) v(u).
    """

    types: Types
    classes: tuple[Classes, ...]
    outputs: tuple[Output, ...]
    totals: tuple[int, ...]
    prices: tuple[int, ...]
    unit: Fraction
    joint: bool

    @property
    def size(self) -> int:
        """Number of equations: types of databases."""
        return len(self.totals)

    @cached_property
    def pairs(self) -> int:
        """Number of variables: classes of pairs."""
        return sum(len(output.row) for output in self.outputs)

    @property
    def diameter(self) -> int:
        """Largest distance of two databases, a bound on the powers in a pattern."""
        return max(max(output.distance) for output in self.outputs)


def integer_program(types: Types, weights: Sequence[int], joint: bool) -> IntegerProgram:
    """Return the program for a prior whose types have the given integer weights.

    Raises ``TooLarge`` before anything large is formed.
    """
    blocks = zip(types.blocks.rows, types.blocks.sizes, strict=True)
    pairs = math.prod(math.comb(len(r) + m * m - 1, m * m - 1) for r, m in blocks)
    if pairs > MAX_PAIRS:
        raise TooLarge(
            f"the exact program has {short(pairs)} pairs of a database and an output, and at most "
            f"{MAX_PAIRS:,} are solved exactly; leave out exact=True (--exact), or use a prior "
            "with more structure."
        )
    sizes = [types.size(t) for t in range(len(types.counts))]
    classes = tuple(classes_against(kind, types) for kind in types.counts)
    outputs = tuple(_output(types, against, sizes[k], sizes) for k, against in enumerate(classes))
    total = sum(weights)
    if not joint:
        ones, unit = (1,) * len(sizes), Fraction(1, total)
        return IntegerProgram(types, classes, outputs, ones, tuple(weights), unit, joint)
    # One database of type t has the probability weights[t] / (total sizes[t]).
    common = math.lcm(*sizes)
    totals = tuple(w * (common // size) for w, size in zip(weights, sizes, strict=True))
    unit = Fraction(1, total * common)
    return IntegerProgram(types, classes, outputs, totals, tuple(sizes), unit, joint)


def _output(types: Types, against: Classes, size: int, sizes: list[int]) -> Output:
    """Count the outputs of each class exactly, and list its neighbours."""
    ways = np.array([1], dtype=object)
    for b, _, w in against.cells:
        made = compositions(w, types.blocks.sizes[b])
        ways = np.multiply.outer(ways, np.array([_multinomial(c) for c in made], dtype=object))
    row = tuple(against.row.tolist())
    count = tuple(
        size * int(c) // sizes[t] for c, t in zip(ways.reshape(-1).tolist(), row, strict=True)
    )
    arcs = tuple(zip(against.source.tolist(), against.target.tolist(), strict=True))
    return Output(row, count, tuple(against.distance.tolist()), arcs)


def _multinomial(counts: Sequence[int]) -> int:
    return math.factorial(sum(counts)) // math.prod(map(math.factorial, counts))


def check_size(program: IntegerProgram, ratio: Fraction) -> None:
    """Raise ``TooLarge`` if the rational numbers of a vertex would be too long."""
    bits = ratio.numerator.bit_length() * program.diameter
    bits += max(n.bit_length() for n in (*program.totals, *program.prices))
    if program.size * bits > MAX_BITS:
        raise TooLarge(
            f"the exact optimum has numerators of about {short(program.size * bits)} bits, and at "
            f"most {MAX_BITS:,} are formed; leave out exact=True (--exact), or use a smaller "
            "epsilon."
        )


def programs_of(prior: Distribution, joint: bool) -> tuple[str, list[IntegerProgram]]:
    """Return the method for the prior, and its programs: one per distinct record of a product."""
    if isinstance(prior, Product):
        return "rows", [
            _over_databases(whole_numbers(law), (len(law),), joint) for law in prior.distinct
        ]
    if isinstance(prior, Exchangeable):
        types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
        table = prior.weights
        weights = whole_numbers(float(table[kind[0][1:]]) for kind in types.counts)
        return "types", [integer_program(types, weights, joint)]
    listed = prior.as_dense("the exact program", 1 << 12)
    exact = (
        _chain_weights(prior)
        if isinstance(prior, Markov)
        else whole_numbers(listed.probabilities())
    )
    return "dense", [_over_databases(exact, prior.space.sizes, joint)]


def _chain_weights(prior: Markov) -> list[int]:
    """Return the probabilities of a chain times a number that makes all of them integers.

    Every distribution is divided by its exact sum, because products of floats may be rounded or
    underflow.
    """
    steps = [whole_numbers(row) for row in prior.transition]
    whole = math.lcm(*map(sum, steps))
    steps = [[step * (whole // sum(row)) for step in row] for row in steps]
    paths = list(enumerate(whole_numbers(prior.initial)))
    for _ in range(prior.space.n - 1):
        paths = [(b, mass * step) for a, mass in paths for b, step in enumerate(steps[a])]
    return [mass for _, mass in paths]


def _over_databases(exact: list[int], sizes: tuple[int, ...], joint: bool) -> IntegerProgram:
    cube = np.array(exact, dtype=object).reshape(sizes)
    types = types_of(swappable_rows(cube))
    weights = [0] * len(types.counts)
    rows = np.indices(sizes).reshape(len(sizes), -1).T
    for t, weight in zip(types.number(rows).tolist(), exact, strict=True):
        weights[t] += weight
    return integer_program(types, weights, joint)
