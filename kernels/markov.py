"""Passes along a Markov chain of rows."""

import math

import numpy as np

from fastpriv.kernels.arrays import count_up_to, largest, sum_of
from fastpriv.kernels.declare import Cube, IntMatrix, Ints, Matrix, Vector, kernel


@kernel()
def markov_counts(initial: Vector, transition: Matrix, rows: Ints) -> Vector:
    """Sum the marginals of the given rows (increasing) of a homogeneous chain."""
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
    """Log-probability of the likeliest path of n rows (Viterbi without the path)."""
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
    """Turn uniform draws (k, n) into paths by inverting the cumulative laws."""
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
    """Log-probability of observed rows (k, n): the forward recursion, rescaled at every row.

    ``emissions[assignment[i], y, s]`` = P(y at row i | hidden value s).
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
