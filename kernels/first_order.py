"""Primal-dual steps for the privacy programs whose outputs share one list of pairs.

Unknowns are v[x, k] for input x and output k, in blocks of a few dozen outputs. Pair e bounds
v[x, k] by growth[e] v[target[e], k], and its multipliers are w[e, k]. Pairs are sorted by their
source: the pairs of x are ``first[x]`` to ``first[x + 1]`` - 1. Loops over outputs are innermost,
so that every structure (axes of a cube, edges of a grid) reads memory in order.
"""

import numpy as np

from .declare import Ints, Matrix, Vector, kernel


@kernel()
def first_order_step(
    v: Matrix,
    w: Matrix,
    pull: Matrix,
    v_anchor: Matrix,
    w_anchor: Matrix,
    cost: Matrix,
    mu: Vector,
    first: Ints,
    target: Ints,
    growth: Vector,
    v_step: Matrix,
    size: Matrix,
    w_step: Vector,
    weight: float,
    age: float,
    ahead: Matrix,
) -> float:
    """Make one reflected step of a block of outputs, drawn to the anchor.

    A step moves v against its reduced cost, then w against the slacks of the extrapolated v, which
    is left in ``ahead``. Its reflection is averaged with the anchor, with weights age + 1 and 1
    (Halpern's iteration). ``pull`` is A' w before and after. Step sizes are v_step / weight, and
    weight w_step[e] / size for pair e of x. Returns the squared length of the step.
    """
    inputs, outputs = v.shape
    keep, draw = (age + 1.0) / (age + 2.0), 1.0 / (age + 2.0)
    moved = np.zeros(outputs)
    for x in range(inputs):
        for k in range(outputs):
            old = v[x, k]
            step = v_step[x, k] / weight
            new = old - step * (cost[x, k] - mu[x] - pull[x, k])
            new = new if new > 0.0 else 0.0
            change = new - old
            moved[k] += change * change / step
            ahead[x, k] = new + change
            v[x, k] = keep * (new + change) + draw * v_anchor[x, k]
            pull[x, k] = 0.0
    inverse = np.empty(outputs)
    here, up = np.empty(outputs), np.empty(outputs)
    for x in range(inputs):
        for k in range(outputs):
            inverse[k] = 1.0 / size[x, k]
            here[k] = ahead[x, k]
            up[k] = 0.0
        for e in range(first[x], first[x + 1]):
            z, grow, step = target[e], growth[e], weight * w_step[e]
            for k in range(outputs):
                old = w[e, k]
                new = old - step * inverse[k] * (grow * ahead[z, k] - here[k])
                new = new if new > 0.0 else 0.0
                change = new - old
                moved[k] += change * change * (size[x, k] / step)
                new = keep * (new + change) + draw * w_anchor[e, k]
                w[e, k] = new
                up[k] += new
                pull[z, k] += grow * new
        for k in range(outputs):
            pull[x, k] -= up[k]
    return moved.sum()


@kernel()
def first_order_adjoint(
    w: Matrix, first: Ints, target: Ints, growth: Vector, pull: Matrix, sources: Matrix
) -> None:
    """Set pull to A' max(w, 0) for given ratios, and ``sources`` to the part of sources in it."""
    pull[:] = 0.0
    sources[:] = 0.0
    for x in range(pull.shape[0]):
        for e in range(first[x], first[x + 1]):
            z, grow = target[e], growth[e]
            for k in range(pull.shape[1]):
                one = w[e, k] if w[e, k] > 0.0 else 0.0
                sources[x, k] += one
                pull[z, k] += grow * one
    for x in range(pull.shape[0]):
        for k in range(pull.shape[1]):
            pull[x, k] -= sources[x, k]


@kernel()
def first_order_closure(v: Matrix, first: Ints, target: Ints, growth: Vector, sweeps: int) -> bool:
    """Raise v until growth[e] v[target, k] >= v[source, k] for all pairs; True when done."""
    for _ in range(sweeps):
        raised = 0
        for x in range(v.shape[0]):
            for e in range(first[x], first[x + 1]):
                z, grow = target[e], growth[e]
                for k in range(v.shape[1]):
                    low = grow * v[z, k] < v[x, k]
                    raised += low
                    v[z, k] = v[x, k] / grow * (1.0 + 2.0**-51) if low else v[z, k]
        if raised == 0:
            return True
    return False
