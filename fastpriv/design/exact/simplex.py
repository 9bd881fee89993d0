"""The simplex method over rays of the cone, in rational arithmetic.

Every v_y is a sum of rays a^f, so the program is: choose rays (y, f) and scales s >= 0 whose
columns add up to the totals, at minimum cost. It has one equation per type of database, and a basis
has as many rays.

A pattern is an integer f on the classes of one output with f(u) <= f(t) + 1 for neighbours; its
ray v = a^f lies in the cone. A vector g lies in the dual cone if some multipliers satisfy

    g(u) = slack e(u) + a (sum of l over arcs into u) - (sum of l over arcs out of u),

l >= 0, slack >= 0. Multipliers of the ray are nonzero only on its tight arcs, f(u) = f(t) + 1.
There, a^f(u) l is a flow from u to t: the node u receives a^f(u) (g(u) - slack e(u)) net. So the
multipliers solve a flow problem. A cut that no flow can cross is a set on which f may be lowered by
one. This lowers <g, v> and gives an improving ray.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, TypeVar

from fastpriv.design.exact.arithmetic import independent_columns, solve_system, solve_transposed
from fastpriv.design.exact.program import IntegerProgram, Output
from fastpriv.errors import SolverFailure

Arc = tuple[int, int]
#: Type of a flow: integers, or polynomials in a.
Amount = TypeVar("Amount")


class Forest:
    """Disjoint sets of nodes (union-find)."""

    def __init__(self, count: int) -> None:
        self._root = list(range(count))

    def find(self, u: int) -> int:
        """Return the smallest node of the tree of ``u``."""
        root = self._root
        while root[u] != u:
            root[u] = root[root[u]]
            u = root[u]
        return u

    def join(self, u: int, t: int) -> bool:
        """Join two trees, and return whether they were separate."""
        low, high = sorted((self.find(u), self.find(t)))
        self._root[high] = low
        return low != high


def components(count: int, arcs: Sequence[Arc]) -> list[int]:
    """Return the component of every node in the graph of the given arcs, as its smallest node."""
    forest = Forest(count)
    for u, t in arcs:
        forest.join(u, t)
    return [forest.find(u) for u in range(count)]


def tree_flows(
    used: Sequence[Arc], others: Sequence[Arc], net: Sequence[Amount]
) -> Iterator[Amount]:
    """Yield the flow on every arc of a spanning forest so that every node receives its net.

    The forest has the arcs in use, which form no cycle, and further arcs that join components.
    Leaves are removed one by one. The remainder at the last node of a tree is yielded too: it must
    be zero.
    """
    forest = Forest(len(net))
    chosen = {arc for arc in [*used, *others] if forest.join(*arc)}
    near: list[set[int]] = [set() for _ in net]
    for u, t in chosen:
        near[u].add(t)
        near[t].add(u)
    total = list(net)
    leaves = [u for u in range(len(net)) if len(near[u]) == 1]
    done = set()
    while leaves:
        u = leaves.pop()
        if not near[u]:
            continue
        t = near[u].pop()
        near[t].discard(u)
        yield total[u] if (t, u) in chosen else -total[u]  # type: ignore[operator]
        total[t] = total[t] + total[u]  # type: ignore[operator]
        done.add(u)
        if len(near[t]) == 1:
            leaves.append(t)
    yield from (q for u, q in enumerate(total) if u not in done)


def without_cycles(flow: dict[Arc, int]) -> list[Arc]:
    """Push a flow around the cycles of its support until none is left; return the support."""
    left = dict(flow)
    while True:
        cycle = _cycle(left)
        if cycle is None:
            return list(left)
        steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        along = [step for step in steps if step in left]
        against = [(t, u) for u, t in steps if (u, t) not in left]
        if not against:
            along, against = against, along
        amount = min(left[arc] for arc in against)
        for arc in along:
            left[arc] += amount
        for arc in against:
            left[arc] -= amount
            if not left[arc]:
                del left[arc]


def _cycle(arcs: dict[Arc, int]) -> list[int] | None:
    """Return the nodes of a cycle, for any directions of its arcs, or None."""
    near: dict[int, list[int]] = {}
    for u, t in arcs:
        path = _path(near, u, t)
        if path is not None:
            return path
        near.setdefault(u, []).append(t)
        near.setdefault(t, []).append(u)
    return None


def _path(near: dict[int, list[int]], start: int, end: int) -> list[int] | None:
    """Return the nodes of the path between two nodes of a forest, None if there is none."""
    came: dict[int, int] = {start: start}
    waiting = [start]
    while waiting:
        u = waiting.pop()
        if u == end:
            path = [u]
            while u != start:
                u = came[u]
                path.append(u)
            return path
        for t in near.get(u, []):
            if t not in came:
                came[t] = u
                waiting.append(t)
    return None


Pattern = tuple[int, ...]


class Certificate(NamedTuple):
    """Proof that an output cannot improve: its pattern, and a flow on the tight arcs.

    The flow is for ``scale`` (g - slack e), in integers and with weights ``power ** f * root **
    (top - f)``. ``slack`` is over ``scale`` too.
    """

    pattern: Pattern
    flow: dict[Arc, int]
    slack: int
    scale: int


def weights(pattern: Pattern, power: int, root: int) -> list[int]:
    """Return (power/root)^f as integers, all times root^max f."""
    top = max(pattern)
    table = [power**k * root ** (top - k) for k in range(top + 1)]
    return [table[k] for k in pattern]


def normal(pattern: Sequence[int]) -> Pattern:
    """Shift a pattern so that its smallest power is zero."""
    least = min(pattern)
    return tuple(k - least for k in pattern)


def price(
    output: Output, pattern: Pattern, g: Sequence[int], power: int, root: int
) -> Certificate | Pattern:
    """Certify that <g, v> >= 0 on the whole cone, or return a pattern where it is negative.

    The slack makes the reduced cost of the current pattern zero. If the flow does not exist, the
    cut gives a pattern of smaller slack. If the flow exists, no ray has a smaller cost per sum of
    its entries. Slacks fall strictly and patterns are finitely many, so this ends.
    """
    while True:
        w = weights(pattern, power, root)
        cost = sum(a * b for a, b in zip(w, g, strict=True))
        scale = sum(w) if cost else 1
        net = [a * (b * scale - cost) for a, b in zip(w, g, strict=True)]
        flow, below = route(tight(output, pattern), net)
        if below is None:
            break
        pattern = normal([k - (u in below) for u, k in enumerate(pattern)])
    if cost < 0:
        return connected(output, pattern, g, power, root)
    return Certificate(pattern, flow, cost, scale)


def tight(output: Output, pattern: Sequence[int]) -> list[Arc]:
    """Return the arcs along which the pattern falls by one."""
    return [(u, t) for u, t in output.arcs if pattern[u] == pattern[t] + 1]


def route(arcs: Sequence[Arc], net: Sequence[int]) -> tuple[dict[Arc, int], set[int] | None]:
    """Send a flow along the arcs so that every node receives its net amount.

    Returns the flow, or a set of nodes of positive net demand that no arc leads into. Dinic's
    algorithm in integers.
    """
    count = len(net)
    ahead: list[list[int]] = [[] for _ in range(count)]
    back: list[list[int]] = [[] for _ in range(count)]
    for u, t in arcs:
        ahead[u].append(t)
        back[t].append(u)
    flow: dict[Arc, int] = {}
    surplus = [max(0, -n) for n in net]
    wanted = [max(0, n) for n in net]
    while True:
        depth = _depths(surplus, ahead, back, flow, count)
        if not any(wanted[u] and depth[u] >= 0 for u in range(count)):
            break
        _block(surplus, wanted, ahead, back, flow, depth)
    if not any(surplus):
        return {arc: n for arc, n in flow.items() if n}, None
    return {}, {u for u in range(count) if depth[u] < 0}


def _depths(
    surplus: list[int],
    ahead: list[list[int]],
    back: list[list[int]],
    flow: dict[Arc, int],
    count: int,
) -> list[int]:
    """Return the breadth-first distance from the nodes with a surplus; -1 if unreachable."""
    depth = [0 if s else -1 for s in surplus]
    queue = deque(u for u in range(count) if surplus[u])
    while queue:
        u = queue.popleft()
        for t in ahead[u]:
            if depth[t] < 0:
                depth[t] = depth[u] + 1
                queue.append(t)
        for t in back[u]:
            if depth[t] < 0 and flow.get((t, u)):
                depth[t] = depth[u] + 1
                queue.append(t)
    return depth


def _block(
    surplus: list[int],
    wanted: list[int],
    ahead: list[list[int]],
    back: list[list[int]],
    flow: dict[Arc, int],
    depth: list[int],
) -> None:
    """Saturate every shortest path from a surplus to a demand."""
    tried = [0] * len(surplus)
    for start in range(len(surplus)):
        path = [start]
        while surplus[start] and path:
            u = path[-1]
            if wanted[u]:
                _augment(path, surplus, wanted, ahead, flow)
                path = [start]
                continue
            choices = len(ahead[u]) + len(back[u])
            while tried[u] < choices:
                k = tried[u]
                t = ahead[u][k] if k < len(ahead[u]) else back[u][k - len(ahead[u])]
                open_arc = k < len(ahead[u]) or bool(flow.get((t, u)))
                if open_arc and depth[t] == depth[u] + 1:
                    path.append(t)
                    break
                tried[u] += 1
            else:
                path.pop()
                if path:
                    tried[path[-1]] += 1


def _augment(
    path: list[int],
    surplus: list[int],
    wanted: list[int],
    ahead: list[list[int]],
    flow: dict[Arc, int],
) -> None:
    """Move as much as the path allows from its first node to its last."""
    steps = list(pairwise(path))
    returned = [(t, u) for u, t in steps if t not in ahead[u]]
    amount = min([surplus[path[0]], wanted[path[-1]], *(flow[arc] for arc in returned)])
    surplus[path[0]] -= amount
    wanted[path[-1]] -= amount
    for u, t in steps:
        if t in ahead[u]:
            flow[u, t] = flow.get((u, t), 0) + amount
        else:
            flow[t, u] -= amount


def connected(
    output: Output, pattern: Sequence[int], g: Sequence[int], power: int, root: int
) -> Pattern:
    """Return an extreme ray that costs no more: its tight arcs join all classes.

    An isolated component moves by integer steps in the cheaper direction until it meets another
    one.
    """
    while True:
        pattern = normal(pattern)
        place = components(len(pattern), tight(output, pattern))
        names = set(place)
        if len(names) == 1:
            return pattern
        w = weights(pattern, power, root)
        cost = dict.fromkeys(names, 0)
        for c, a, b in zip(place, w, g, strict=True):
            cost[c] += a * b
        moved = max(names, key=lambda c: (abs(cost[c]), c))
        step = -1 if cost[moved] > 0 else 1
        pattern = [k + step * (c == moved) for k, c in zip(pattern, place, strict=True)]


#: Most changes of basis. The lexicographic rule ends by itself, but may take longer.
_MOST_PIVOTS = 20_000


@dataclass(frozen=True)
class Ray:
    """One output and one pattern of powers."""

    output: int
    pattern: Pattern


@dataclass(frozen=True)
class OptimalBasis:
    """An optimal basis at one ratio, with its proof.

    ``scales`` and ``multipliers`` are numerators over their denominators. ``certificates`` has one
    entry per output, for g = count (price distance - multiplier) times the denominator.
    """

    rays: tuple[Ray, ...]
    scales: tuple[list[int], int]
    multipliers: tuple[list[int], int]
    certificates: tuple[Certificate, ...]
    pivots: int


class Simplex:
    """A basis of rays at one ratio, and the steps that improve it."""

    def __init__(self, program: IntegerProgram, ratio: Fraction, rays: Sequence[Ray]) -> None:
        self.program, self.power, self.root = program, ratio.numerator, ratio.denominator
        self.rays: list[Ray | None] = list(rays)
        self.columns = [self.column(ray) for ray in rays]
        self.pivots = 0
        #: A pattern per output to start pricing from.
        self.known: dict[int, Pattern] = {ray.output: ray.pattern for ray in reversed(rays)}
        self._settle()

    def column(self, ray: Ray) -> list[int]:
        """Return the contribution of a unit of a ray to every total."""
        return column_of(self.program, ray, self.power, self.root)

    def cost(self, ray: Ray) -> int:
        """Return the cost of a unit of a ray."""
        output, prices = self.program.outputs[ray.output], self.program.prices
        w = weights(ray.pattern, self.power, self.root)
        terms = zip(output.row, output.count, output.distance, w, strict=True)
        return sum(prices[t] * count * d * weight for t, count, d, weight in terms)

    def _settle(self) -> None:
        """Solve for the scales, and keep the basis for breaking ties."""
        self.scales = solve_system(self.columns, self.program.totals)
        self.reference = list(self.columns)

    def optimum(self) -> OptimalBasis:
        """Improve the basis until its proof of optimality exists."""
        if min(self.scales[0]) < 0 and not self._mend():
            self._make_feasible()
        certificates = self._minimise(feasible=True)
        rays = tuple(ray for ray in self.rays if ray is not None)
        return OptimalBasis(rays, self.scales, self.multipliers, tuple(certificates), self.pivots)

    def proof(self) -> list[Certificate] | None:
        """Return the proof that this basis is optimal, None if it is not."""
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
        self.multipliers = solve_transposed(self.columns, costs)

    def reduced_costs(self, k: int, feasible: bool = True) -> list[int]:
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
        answer = price(output, start, self.reduced_costs(k, feasible), self.power, self.root)
        self.known[k] = answer.pattern if isinstance(answer, Certificate) else answer
        return answer

    def _improves(self, ray: Ray, feasible: bool) -> bool:
        w = weights(ray.pattern, self.power, self.root)
        g = self.reduced_costs(ray.output, feasible)
        return sum(a * b for a, b in zip(w, g, strict=True)) < 0

    def _enter(self, ray: Ray) -> None:
        """Bring a ray into the basis, instead of the one that first falls to zero."""
        self.pivots += 1
        if self.pivots > _MOST_PIVOTS:
            raise SolverFailure(
                f"no exact optimum after {_MOST_PIVOTS:,} changes of basis. Use fewer databases, "
                "or solve without exact=True."
            )
        column = self.column(ray)
        direction, _ = solve_system(self.columns, column)
        self._replace(self._leaving(direction), ray, column)

    def _replace(self, place: int, ray: Ray, column: list[int]) -> None:
        self.rays[place], self.columns[place] = ray, column
        self.scales = solve_system(self.columns, self.program.totals)

    def _leaving(self, direction: list[int]) -> int:
        """Return the first row of the smallest ratio, ties broken lexicographically.

        The totals are perturbed by powers of an infinitesimal along the columns of the reference
        basis. So ties are always broken, and no basis recurs.
        """
        rows = [i for i, d in enumerate(direction) if d > 0]
        if not rows:
            raise SolverFailure(
                "the exact program has no smallest cost. Solve without exact=True, and please "
                "report this program."
            )
        values = self.scales[0]
        for j in range(-1, len(self.reference)):
            if j >= 0:
                values, _ = solve_system(self.columns, self.reference[j])
            best = rows[0]
            for i in rows[1:]:
                if values[i] * direction[best] < values[best] * direction[i]:
                    best = i
            rows = [i for i in rows if values[i] * direction[best] == values[best] * direction[i]]
            if len(rows) == 1:
                break
        return rows[0]

    def _mend(self) -> bool:
        """Make the scales non-negative by dual steps, and return whether that worked.

        After a small change of the totals, the multipliers of a basis are optimal but some scales
        may be negative. The ray that enters has the smallest reduced cost per unit added to the
        negative scale. Dual steps may cycle, so their number is limited.
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
        """Return the ray of smallest reduced cost per unit of a negative scale that it adds.

        The price on the scale starts at zero. It is lowered to the ratio of every ray that it makes
        profitable, until there is none.
        """
        unit = [int(i == place) for i in range(self.program.size)]
        row, _ = solve_transposed(self.columns, unit)
        reduced = [self.reduced_costs(k) for k in range(len(self.program.outputs))]
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
        """Make all scales non-negative: one artificial column is driven to zero."""
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
                raise SolverFailure(
                    "the exact program has no feasible basis. Solve without exact=True, and "
                    "please report this program."
                )
            self._drive_out(place, [gone])
        self._settle()

    def _drive_out(self, place: int, spare: Sequence[Ray | None]) -> None:
        """Replace a column at level zero by any ray that keeps the basis independent."""
        rays = [ray for ray in spare if ray is not None]
        for ray in [*rays, *hamming_rays(self.program)]:
            column = self.column(ray)
            if solve_system(self.columns, column)[0][place]:
                self._replace(place, ray, column)
                return
        raise SolverFailure(
            "the exact program has dependent equations. Solve without exact=True, and please "
            "report this program."
        )


def column_of(program: IntegerProgram, ray: Ray, power: int, root: int) -> list[int]:
    """Return the contribution of a unit of a ray to every total, at the ratio power/root."""
    output, column = program.outputs[ray.output], [0] * program.size
    w = weights(ray.pattern, power, root)
    for t, count, weight in zip(output.row, output.count, w, strict=True):
        column[t] += count * weight
    return column


def hamming_rays(program: IntegerProgram) -> list[Ray]:
    """Return the rays a^-d(x, y) of randomised response: independent for every a > 1."""
    return [
        Ray(k, normal([-d for d in output.distance])) for k, output in enumerate(program.outputs)
    ]


def complete(program: IntegerProgram, ratio: Fraction, rays: Sequence[Ray]) -> list[Ray]:
    """Return independent rays: the given ones first, then rays of randomised response."""
    pool = list(dict.fromkeys([*rays, *hamming_rays(program)]))
    power, root = ratio.numerator, ratio.denominator
    kept = independent_columns([column_of(program, ray, power, root) for ray in pool])
    if len(kept) < program.size:
        raise SolverFailure(
            "no independent rays were found for the exact program. Solve without exact=True, "
            "and please report this program."
        )
    return [pool[j] for j in kept]
