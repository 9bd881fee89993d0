"""Passes along a Markov chain of records."""

import math

import numpy as np

from .arrays import count_up_to, largest, sum_of
from .declare import Cube, IntMatrix, Ints, Matrix, Vector, helper, kernel


@kernel()
def markov_counts(initial: Vector, transition: Matrix, rows: Ints) -> Vector:
    """Sum the marginals of the given records (increasing) of a homogeneous chain."""
    m = initial.shape[0]
    law = initial.copy()
    ahead = np.empty(m)
    total = np.zeros(m)
    at = 0
    for row in rows:
        while at < row:
            for b in range(m):
                mass = 0.0
                for a in range(m):
                    mass += law[a] * transition[a, b]
                ahead[b] = mass
            # Rescaling keeps a million rounding errors from drifting the total.
            scale = 1.0 / sum_of(ahead)
            for b in range(m):
                law[b] = ahead[b] * scale
            at += 1
        for a in range(m):
            total[a] += law[a]
    return total


@kernel()
def markov_best_path(log_initial: Vector, log_transition: Matrix, n: int) -> float:
    """Log-probability of the likeliest path of n records (Viterbi without the path)."""
    m = log_initial.shape[0]
    best = log_initial.copy()
    ahead = np.empty(m)
    for _ in range(n - 1):
        for b in range(m):
            top = -math.inf
            for a in range(m):
                top = max(top, best[a] + log_transition[a, b])
            ahead[b] = top
        best, ahead = ahead, best
    return largest(best)


@kernel()
def markov_paths(initial_edges: Vector, transition_edges: Matrix, draws: Matrix) -> IntMatrix:
    """Turn uniform draws (k, n) into paths by inverting the cumulative distributions."""
    k, n = draws.shape
    m = initial_edges.shape[0]
    paths = np.empty((k, n), dtype=np.int64)
    for p in range(k):
        state = count_up_to(initial_edges, draws[p, 0] * initial_edges[m - 1])
        paths[p, 0] = state
        for i in range(1, n):
            edges = transition_edges[state]
            state = count_up_to(edges, draws[p, i] * edges[m - 1])
            paths[p, i] = state
    return paths


@kernel()
def hidden_markov_log_prob(
    initial: Vector, transition: Matrix, emissions: Cube, assignment: Ints, rows: IntMatrix
) -> Vector:
    """Log-probability of observed records (k, n): the forward recursion, rescaled at each record.

    ``emissions[assignment[i], y, s]`` = P(y at record i | hidden value s).
    """
    k, n = rows.shape
    m = initial.shape[0]
    result = np.empty(k)
    ahead = np.empty(m)
    for p in range(k):
        law = initial.copy()
        total = 0.0
        for i in range(n):
            weights = emissions[assignment[i], rows[p, i]]
            mass = 0.0
            for a in range(m):
                law[a] *= weights[a]
                mass += law[a]
            if mass == 0.0:
                total = -math.inf
                break
            total += math.log(mass)
            if i + 1 < n:
                for b in range(m):
                    flow = 0.0
                    for a in range(m):
                        flow += law[a] * transition[a, b]
                    ahead[b] = flow / mass
                law, ahead = ahead, law
        result[p] = total
    return result


@helper()
def _add_logs(a, b):
    """Log of e^a + e^b."""
    top = max(a, b)
    return top if top == -math.inf else top + math.log1p(math.exp(min(a, b) - top))


@helper()
def _odds(zero, other_zero, one, other_one, d):
    """Return ln (z e^d + z') / (o e^d + o') from the logs of z, z', o, o'; NaN for 0/0."""
    if d == math.inf:
        top, bottom = zero, one
    elif d == -math.inf:
        top, bottom = other_zero, other_one
    else:
        top = _add_logs(zero + d, other_zero)
        bottom = _add_logs(one + d, other_one)
    return math.nan if top == -math.inf and bottom == -math.inf else top - bottom


@kernel()
def chain_odds_range(
    log_steps: Matrix, start: float, log_near: Cube, outputs: Ints, assignment: Ints
) -> Matrix:
    """Return the smallest and largest log-odds of state 0 after each number of observed records.

    Weights v of two states begin with the log-odds ``start``. Record i turns them into
    v'(s) = sum over t of steps[s, t] near[assignment[i], y, t] v(t), for any of
    ``outputs[assignment[i]]`` outputs y. The map of odds is monotone, so the bounds of
    the range come from bounds. Impossible outputs (0/0) are left out.
    """
    n = assignment.shape[0]
    ends = np.empty((n + 1, 2))
    ends[0, 0], ends[0, 1] = start, start
    for i in range(n):
        kind = assignment[i]
        least, most = math.inf, -math.inf
        for y in range(outputs[kind]):
            first, second = log_near[kind, y, 0], log_near[kind, y, 1]
            for end in range(2):
                odds = _odds(
                    log_steps[0, 0] + first,
                    log_steps[0, 1] + second,
                    log_steps[1, 0] + first,
                    log_steps[1, 1] + second,
                    ends[i, end],
                )
                if odds == odds:
                    least, most = min(least, odds), max(most, odds)
        ends[i + 1, 0], ends[i + 1, 1] = least, most
    return ends


@kernel()
def chain_extreme_mass(
    initial: Vector,
    transition: Matrix,
    near: Cube,
    outputs: Ints,
    assignment: Ints,
    sign: float,
) -> float:
    """Bound ln of the weight of any output: the largest for sign 1, the smallest for -1.

    Backwards: v(a) <- extreme over y of sum_b T[a, b] near[kind of the record, y, b] v(b), rescaled
    at every record; ``outputs[kind]`` outputs count.
    """
    n, m = assignment.shape[0], initial.shape[0]
    value, ahead, weighted = np.ones(m), np.empty(m), np.empty(m)
    total = 0.0
    for i in range(n - 1, -1, -1):
        kind, top = assignment[i], 0.0
        states = m if i > 0 else 1
        for y in range(outputs[kind]):
            for b in range(m):
                weighted[b] = near[kind, y, b] * value[b]
            for a in range(states):
                flow = 0.0
                for b in range(m):
                    step = transition[a, b] if i > 0 else initial[b]
                    flow += step * weighted[b]
                if y == 0 or sign * flow > sign * ahead[a]:
                    ahead[a] = flow
        for a in range(states):
            top = max(top, ahead[a])
        if top == 0.0:
            return -math.inf
        total += math.log(top)
        for a in range(states):
            value[a] = ahead[a] / top
    return total
