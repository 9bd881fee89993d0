"""The simplex method over rays of the cone, in rational arithmetic.

Every v_y is a sum of rays a^f, so the program is: choose rays (y, f) and scales s >= 0 whose
columns add up to the totals, at least cost. It has one equation per type of database; a basis is
as many rays, and improving rays come from :mod:`fastpriv.design.exact.flows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fastpriv.design.exact import linear
from fastpriv.design.exact.flows import Certificate, Pattern, normal, price, weights
from fastpriv.design.exact.program import Program
from fastpriv.errors import SolverFailure

#: Most changes of basis before giving up. The lexicographic rule ends by itself, some day.
_MOST_PIVOTS = 20_000


@dataclass(frozen=True)
class Ray:
    """One output and one pattern of powers."""

    output: int
    pattern: Pattern


@dataclass(frozen=True)
class Optimum:
    """An optimal basis at one ratio, with its proof.

    ``scales`` and ``multipliers`` are numerators over their denominators; ``certificates`` has
    one entry per output, for g = count (price distance - multiplier) times the denominator.
    """

    rays: tuple[Ray, ...]
    scales: tuple[list[int], int]
    multipliers: tuple[list[int], int]
    certificates: tuple[Certificate, ...]
    pivots: int


class Simplex:
    """A basis of rays at one ratio, and the steps that improve it."""

    def __init__(self, program: Program, ratio: Fraction, rays: Sequence[Ray]) -> None:
        self.program, self.power, self.root = program, ratio.numerator, ratio.denominator
        self.rays: list[Ray | None] = list(rays)
        self.columns = [self.column(ray) for ray in rays]
        self.pivots = 0
        #: A pattern per output to start pricing from.
        self.known: dict[int, Pattern] = {ray.output: ray.pattern for ray in reversed(rays)}
        self._settle()

    def column(self, ray: Ray) -> list[int]:
        """Return what a unit of a ray adds to every total."""
        return column_of(self.program, ray, self.power, self.root)

    def cost(self, ray: Ray) -> int:
        """Return what a unit of a ray costs."""
        output, prices = self.program.outputs[ray.output], self.program.prices
        w = weights(ray.pattern, self.power, self.root)
        terms = zip(output.row, output.count, output.distance, w, strict=True)
        return sum(prices[t] * count * d * weight for t, count, d, weight in terms)

    def _settle(self) -> None:
        """Solve for the scales, and remember the basis that ties are broken with."""
        self.scales = linear.solve(self.columns, self.program.totals)
        self.reference = list(self.columns)

    def optimum(self) -> Optimum:
        """Improve the basis until its proof of optimality exists."""
        if min(self.scales[0]) < 0 and not self._mend():
            self._make_feasible()
        certificates = self._minimise(feasible=True)
        rays = tuple(ray for ray in self.rays if ray is not None)
        return Optimum(rays, self.scales, self.multipliers, tuple(certificates), self.pivots)

    def proof(self) -> list[Certificate] | None:
        """Return the proof that this basis is optimal as it stands, None if it is not."""
        self.multiply()
        certificates = []
        for k in range(len(self.program.outputs)):
            certificate = self._price(k, feasible=True)
            if not isinstance(certificate, Certificate):
                return None
            certificates.append(certificate)
        return certificates

    def certificate(self, k: int) -> Certificate | Pattern:
        """Return the proof that one output cannot improve the basis, or a ray that does."""
        return self._price(k, feasible=True)

    def _minimise(self, feasible: bool) -> list[Certificate]:
        """Enter improving rays until there are none; before feasibility, real rays cost nothing."""
        while True:
            self.multiply(feasible)
            certificates: list[Certificate] = []
            better: list[Ray] = []
            for k in range(len(self.program.outputs)):
                answer = self._price(k, feasible)
                if isinstance(answer, Certificate):
                    certificates.append(answer)
                else:
                    better.append(Ray(k, answer))
            if not better:
                return certificates
            for ray in better:
                self.known[ray.output] = ray.pattern
                if ray is better[0] or self._improves(ray, feasible):
                    self._enter(ray)
                    if not feasible and None not in self.rays:
                        return []
                    self.multiply(feasible)

    def multiply(self, feasible: bool = True) -> None:
        """Solve for the multipliers of the basis."""
        costs = [
            self.cost(ray) if ray is not None and feasible else int(ray is None)
            for ray in self.rays
        ]
        self.multipliers = linear.solve_transposed(self.columns, costs)

    def reduced(self, k: int, feasible: bool = True) -> list[int]:
        """Return count (price distance - multiplier) of every class, times the denominator."""
        output, prices = self.program.outputs[k], self.program.prices
        mu, denominator = self.multipliers
        factor = denominator if feasible else 0
        return [
            count * (factor * prices[t] * d - mu[t])
            for t, count, d in zip(output.row, output.count, output.distance, strict=True)
        ]

    def _price(self, k: int, feasible: bool) -> Certificate | Pattern:
        output = self.program.outputs[k]
        start = self.known.get(k) or normal([-d for d in output.distance])
        answer = price(output, start, self.reduced(k, feasible), self.power, self.root)
        self.known[k] = answer.pattern if isinstance(answer, Certificate) else answer
        return answer

    def _improves(self, ray: Ray, feasible: bool) -> bool:
        w = weights(ray.pattern, self.power, self.root)
        g = self.reduced(ray.output, feasible)
        return sum(a * b for a, b in zip(w, g, strict=True)) < 0

    def _enter(self, ray: Ray) -> None:
        """Bring a ray into the basis, in place of the one that first falls to zero."""
        self.pivots += 1
        if self.pivots > _MOST_PIVOTS:
            raise SolverFailure(f"no exact optimum after {_MOST_PIVOTS:,} changes of basis")
        column = self.column(ray)
        direction, _ = linear.solve(self.columns, column)
        self._replace(self._leaving(direction), ray, column)

    def _replace(self, place: int, ray: Ray, column: list[int]) -> None:
        self.rays[place], self.columns[place] = ray, column
        self.scales = linear.solve(self.columns, self.program.totals)

    def _leaving(self, direction: list[int]) -> int:
        """Return the first row of the least ratio, ties broken lexicographically.

        The totals are thought of as perturbed by powers of an infinitesimal along the columns of
        the reference basis: no two rows tie for ever, and no basis comes back.
        """
        rows = [i for i, d in enumerate(direction) if d > 0]
        if not rows:
            raise SolverFailure("the exact program has no least cost")
        values = self.scales[0]
        for j in range(-1, len(self.reference)):
            if j >= 0:
                values, _ = linear.solve(self.columns, self.reference[j])
            best = rows[0]
            for i in rows[1:]:
                if values[i] * direction[best] < values[best] * direction[i]:
                    best = i
            rows = [i for i in rows if values[i] * direction[best] == values[best] * direction[i]]
            if len(rows) == 1:
                break
        return rows[0]

    def _mend(self) -> bool:
        """Make the scales non-negative by dual steps, and say whether that worked.

        A basis whose multipliers are optimal but whose scales are not all non-negative is what a
        small change of the totals leaves. The ray that enters is the one whose reduced cost,
        divided by what it adds to the negative scale, is least. Dual steps may cycle, so they are
        few.
        """
        for _ in range(2 * self.program.size):
            if min(self.scales[0]) >= 0:
                return True
            if self.proof() is None:
                return False
            place = self.scales[0].index(min(self.scales[0]))
            ray = self._dual_entering(place)
            if ray is None:
                return False
            self.pivots += 1
            self._replace(place, ray, self.column(ray))
        return min(self.scales[0]) >= 0

    def _dual_entering(self, place: int) -> Ray | None:
        """Return the ray of least reduced cost per unit of a negative scale that it adds.

        Starting with no price at all on the scale, the price is lowered to the ratio of every
        ray that it makes profitable, until there is none.
        """
        unit = [int(i == place) for i in range(self.program.size)]
        row, _ = linear.solve_transposed(self.columns, unit)
        reduced = [self.reduced(k) for k in range(len(self.program.outputs))]
        best: Ray | None = None
        price_of_cost, price_of_scale = 0, 1
        improved = True
        while improved:
            improved = False
            for k, output in enumerate(self.program.outputs):
                adds = [c * row[t] for t, c in zip(output.row, output.count, strict=True)]
                g = [
                    price_of_cost * a + price_of_scale * b
                    for a, b in zip(reduced[k], adds, strict=True)
                ]
                answer = price(output, self.known[k], g, self.power, self.root)
                if isinstance(answer, Certificate):
                    continue
                w = weights(answer, self.power, self.root)
                best, improved = Ray(k, answer), True
                price_of_cost = -sum(a * b for a, b in zip(w, adds, strict=True))
                price_of_scale = sum(a * b for a, b in zip(w, reduced[k], strict=True))
        return best

    def _make_feasible(self) -> None:
        """Make all scales non-negative: one artificial column, driven to zero."""
        values, _ = self.scales
        negative = [i for i, value in enumerate(values) if value < 0]
        column = [-sum(self.columns[i][t] for i in negative) for t in range(self.program.size)]
        worst = min(negative, key=lambda i: values[i])
        gone = self.rays[worst]
        self.rays[worst], self.columns[worst] = None, column
        self._settle()
        certificates = self._minimise(feasible=False)
        if None in self.rays:
            place = self.rays.index(None)
            if certificates and self.scales[0][place]:
                raise SolverFailure("the exact program has no feasible basis")
            self._drive_out(place, [gone])
        self._settle()

    def _drive_out(self, place: int, spare: Sequence[Ray | None]) -> None:
        """Replace a column at level zero by any ray that keeps the basis independent."""
        rays = [ray for ray in spare if ray is not None]
        for ray in [*rays, *hamming_rays(self.program)]:
            column = self.column(ray)
            if linear.solve(self.columns, column)[0][place]:
                self._replace(place, ray, column)
                return
        raise SolverFailure("the exact program has dependent equations")


def column_of(program: Program, ray: Ray, power: int, root: int) -> list[int]:
    """Return what a unit of a ray adds to every total, at the ratio power/root."""
    output, column = program.outputs[ray.output], [0] * program.size
    w = weights(ray.pattern, power, root)
    for t, count, weight in zip(output.row, output.count, w, strict=True):
        column[t] += count * weight
    return column


def hamming_rays(program: Program) -> list[Ray]:
    """Return the rays of E_d and E_i, a^-d(x, y): independent for every a > 1."""
    return [
        Ray(k, normal([-d for d in output.distance])) for k, output in enumerate(program.outputs)
    ]


def complete(program: Program, ratio: Fraction, rays: Sequence[Ray]) -> list[Ray]:
    """Return independent rays, the given ones first, completed by those of E_d."""
    pool = list(dict.fromkeys([*rays, *hamming_rays(program)]))
    power, root = ratio.numerator, ratio.denominator
    kept = linear.independent([column_of(program, ray, power, root) for ray in pool])
    if len(kept) < program.size:
        raise SolverFailure("no independent rays were found for the exact program")
    return [pool[j] for j in kept]
