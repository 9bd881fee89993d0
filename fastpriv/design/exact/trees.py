"""Forests on the classes of an output, and flows that live on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Arc = tuple[int, int]
#: What flows: whole numbers, or polynomials in a.
Amount = TypeVar("Amount")


class Forest:
    """Nodes that are joined by and by."""

    def __init__(self, count: int) -> None:
        self._root = list(range(count))

    def find(self, u: int) -> int:
        """Return the least node of the tree of ``u``."""
        root = self._root
        while root[u] != u:
            root[u] = root[root[u]]
            u = root[u]
        return u

    def join(self, u: int, t: int) -> bool:
        """Join two trees, and say whether they were two."""
        low, high = sorted((self.find(u), self.find(t)))
        self._root[high] = low
        return low != high


def components(count: int, arcs: Sequence[Arc]) -> list[int]:
    """Return the component of every node in the graph of the given arcs, as its least node."""
    forest = Forest(count)
    for u, t in arcs:
        forest.join(u, t)
    return [forest.find(u) for u in range(count)]


def tree_flows(
    used: Sequence[Arc], others: Sequence[Arc], net: Sequence[Amount]
) -> Iterator[Amount]:
    """Yield the flow on every arc of a spanning forest so that every node receives its net.

    The forest has the arcs in use, which form no cycle, and others where they join more. Leaves
    are taken off one after the other. What is left at the last node of a tree is yielded too: it
    must be zero.
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
    """Push a flow around the cycles of its support until there are none; return the support."""
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
    """Return the nodes of a cycle, whatever the directions of its arcs, or None."""
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
