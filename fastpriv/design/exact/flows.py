"""Flows along the tight pairs of a pattern: exact multipliers, or a better pattern.

A pattern is an integer f on the classes of one output with f(u) <= f(t) + 1 for neighbours; its
ray v = a^f lies in the cone. A vector g lies in the dual cone when some multipliers satisfy

    g(u) = slack e(u) + a (sum of l over arcs into u) - (sum of l over arcs out of u),

l >= 0, slack >= 0. Multipliers that belong to the ray live on its tight arcs, f(u) = f(t) + 1.
There, a^f(u) l is a plain flow from u to t: the node u receives a^f(u) (g(u) - slack e(u)) net. So
the multipliers are a flow problem, and a cut that no flow can cross is a set on which f may be
lowered by one, which lowers <g, v>.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fastpriv.design.exact.program import Output
from fastpriv.design.exact.trees import Arc, components

Pattern = tuple[int, ...]


class Certificate(NamedTuple):
    """Why an output cannot improve: its pattern, and a flow on the pattern's tight arcs.

    The flow is that of ``scale`` (g - slack e), in whole numbers and with weights
    ``power ** f * root ** (top - f)``; ``slack`` is given over ``scale`` too.
    """

    pattern: Pattern
    flow: dict[Arc, int]
    slack: int
    scale: int


def weights(pattern: Pattern, power: int, root: int) -> list[int]:
    """Return (power/root)^f as whole numbers, all times root^max f."""
    top = max(pattern)
    table = [power**k * root ** (top - k) for k in range(top + 1)]
    return [table[k] for k in pattern]


def normal(pattern: Sequence[int]) -> Pattern:
    """Shift a pattern so that its least power is zero."""
    least = min(pattern)
    return tuple(k - least for k in pattern)


def price(
    output: Output, pattern: Pattern, g: Sequence[int], power: int, root: int
) -> Certificate | Pattern:
    """Certify that <g, v> >= 0 on the whole cone, or return a pattern where it is negative.

    Starting from a pattern, the slack is what makes its own reduced cost zero. Where the flow
    does not exist, the cut gives a pattern of smaller slack, until the flow exists: then no ray
    has a smaller cost per sum of its entries. Slacks fall strictly and patterns are finitely many,
    so that this ends.
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

    Returns the flow, or a set of nodes that no arc leads into and that wants more than nothing.
    Dinic's algorithm in whole numbers.
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
    """Breadth-first distance from the nodes with a surplus in the residual graph; -1 if none."""
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
    """Saturate every shortest path from a surplus to a want."""
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

    A component that stands by itself moves by whole steps in the direction that costs less until
    it meets another one.
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
