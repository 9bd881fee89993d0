"""Passes along a Markov chain of rows."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def markov_counts(initial, transition, rows):
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
            scale = 1.0 / ahead.sum()
            for b in range(m):
                law[b] = ahead[b] * scale
            at += 1
        for a in range(m):
            total[a] += law[a]
    return total


@njit(nogil=True, cache=True)
def markov_best_path(log_initial, log_transition, n):
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
    return best.max()


@njit(nogil=True, cache=True)
def markov_paths(initial_edges, transition_edges, draws):
    """Turn uniform draws (k, n) into paths by inverting the cumulative laws."""
    k, n = draws.shape
    m = initial_edges.shape[0]
    paths = np.empty((k, n), dtype=np.int64)
    for p in range(k):
        state = np.searchsorted(initial_edges, draws[p, 0] * initial_edges[m - 1], side="right")
        paths[p, 0] = state
        for i in range(1, n):
            edges = transition_edges[state]
            state = np.searchsorted(edges, draws[p, i] * edges[m - 1], side="right")
            paths[p, i] = state
    return paths


@njit(nogil=True, cache=True)
def hidden_markov_log_prob(initial, transition, emissions, assignment, rows):
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


SIGNATURES = {
    "hidden_markov_log_prob": ["f8[::1](f8[::1], f8[:, ::1], f8[:, :, ::1], i8[::1], i8[:, ::1])"],
    "markov_best_path": ["f8(f8[::1], f8[:, ::1], i8)"],
    "markov_counts": ["f8[::1](f8[::1], f8[:, ::1], i8[::1])"],
    "markov_paths": ["i8[:, ::1](f8[::1], f8[:, ::1], f8[:, ::1])"],
}
