"""Primal-dual steps for the privacy programs whose outputs share one list of pairs.

Unknowns are v[k, x] for output k and input x. Pair e bounds v[k, source] by growth[e]
v[k, target], and its multipliers are w[k, e]. Pairs are sorted by their source: those of x are
``first[x]`` to ``first[x + 1]`` - 1, and ``back[e]`` is the pair in the other direction.
"""

import numpy as np

from .declare import Ints, Matrix, Vector, kernel


@kernel()
def first_order_step(
    v: Matrix,
    w: Matrix,
    v_anchor: Matrix,
    w_anchor: Matrix,
    cost: Matrix,
    mu: Vector,
    first: Ints,
    target: Ints,
    back: Ints,
    growth: Vector,
    v_step: Vector,
    w_step: Vector,
    age: float,
    start: int,
    stop: int,
    sums: Vector,
) -> float:
    """Make one reflected step of the outputs ``start`` to ``stop`` - 1, drawn to the anchor.

    A step moves v against its reduced cost, then w against the slacks of the extrapolated v, whose
    sums over outputs are added to ``sums``. Its reflection is averaged with the anchor, with
    weights age + 1 and 1 (Halpern's iteration). Returns the squared length of the step.
    """
    size = v.shape[1]
    keep, draw = (age + 1.0) / (age + 2.0), 1.0 / (age + 2.0)
    ahead = np.empty(size)
    length = 0.0
    for k in range(start, stop):
        for x in range(size):
            slope = cost[k, x] - mu[x]
            for e in range(first[x], first[x + 1]):
                slope += w[k, e] - growth[back[e]] * w[k, back[e]]
            old = v[k, x]
            new = max(old - v_step[x] * slope, 0.0)
            ahead[x] = 2.0 * new - old
            length += (new - old) * (new - old) / v_step[x]
            v[k, x] = keep * ahead[x] + draw * v_anchor[k, x]
            sums[x] += ahead[x]
        for x in range(size):
            for e in range(first[x], first[x + 1]):
                old = w[k, e]
                new = max(old - w_step[e] * (growth[e] * ahead[target[e]] - ahead[x]), 0.0)
                length += (new - old) * (new - old) / w_step[e]
                w[k, e] = keep * (2.0 * new - old) + draw * w_anchor[k, e]
    return length


@kernel()
def first_order_closure(
    v: Matrix, first: Ints, target: Ints, growth: Vector, sweeps: int, start: int, stop: int
) -> bool:
    """Raise v[k] until growth[e] v[k, target] >= v[k, source] for all pairs; True when done."""
    for k in range(start, stop):
        changed = True
        for _ in range(sweeps):
            changed = False
            for x in range(v.shape[1]):
                for e in range(first[x], first[x + 1]):
                    if growth[e] * v[k, target[e]] < v[k, x]:
                        v[k, target[e]] = v[k, x] / growth[e] * (1.0 + 2.0**-51)
                        changed = True
            if not changed:
                break
        if changed:
            return False
    return True
