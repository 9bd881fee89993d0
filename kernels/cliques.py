"""Lists the selections of one row from each of m slices whose capacity may exceed a threshold.

A selection is built row by row, depth first. A selection of j rows is left if its capacity cannot
exceed the threshold for j rows: a lower bound for j rows of a selection above the threshold for m
rows. For two rows this is known beforehand for all pairs, so only rows that are compatible with
all rows chosen so far are tried.

Any output distribution q bounds a selection by the largest divergence D(w, q) of its rows. So a
complete selection is left if some distribution of a list bounds it. For every row, one bit for each
distribution is set if the divergence exceeds the threshold. Distributions that proved something
replace older ones in the list. Other selections are bounded by a distribution of their own, from a
few steps of Newton's method.

Before that, a row is left out if the affinities of all chosen rows and this row prove the same.
This takes a few operations, see ``_matrices/searches/cliques.py``.
"""

import math

import numpy as np

from .arrays import dot
from .declare import (
    BoolMatrix,
    IntMatrix,
    Ints,
    Matrix,
    Vector,
    WordMatrix,
    helper,
    kernel,
)

U = 2.0**-53
NEVER = 1e-300  # replaces probabilities of zero
ROUNDS = 8
ROOM = 0.9  # share of the way to the boundary
RIDGE = 1e-12
OFTEN = 8  # proofs between two new distributions
COST = 32  # of a proof, in candidates
SAMPLED, GOOD = 16, 4  # of incomplete selections one in so many is tried, or all if 1 in 4 succeeds


@helper(error_model="numpy")
def _newton(M, D, size, first, second):
    """Write into ``first`` the step dp with M dp = D - lambda 1 and sum dp = 0; M is overwritten.

    Adding a multiple of 1 1' to M changes no step of sum 0.
    """
    trace = 0.0
    for i in range(size):
        trace += M[i, i]
    for i in range(size):
        for j in range(i + 1):
            M[i, j] += trace
        M[i, i] *= 1.0 + RIDGE
        first[i], second[i] = D[i], 1.0
    for i in range(size):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            if j < i:
                M[i, j] = total / M[j, j]
            else:
                M[i, i] = math.sqrt(max(total, 1e-15 * M[i, i], NEVER))
    for i in range(size):
        for k in range(i):
            first[i] -= M[i, k] * first[k]
            second[i] -= M[i, k] * second[k]
        first[i] /= M[i, i]
        second[i] /= M[i, i]
    for i in range(size - 1, -1, -1):
        first[i] /= M[i, i]
        second[i] /= M[i, i]
        for k in range(i):
            first[k] -= M[i, k] * first[i]
            second[k] -= M[i, k] * second[i]
    sums, ones = 0.0, 0.0
    for i in range(size):
        sums += first[i]
        ones += second[i]
    for i in range(size):
        first[i] -= sums / ones * second[i]


@helper(error_model="numpy")
def _proved(W, own, chosen, size, level, q, logs, V, M, over):
    """Whether some q, left as its logarithms, proves that the rows carry at most ``level``."""
    outputs = W.shape[1]
    p, D, step, spare = over[0], over[1], over[2], over[3]
    for a in range(size):
        p[a] = 1.0 / size
    for _ in range(ROUNDS):
        mass = 0.0
        for y in range(outputs):
            total = 0.0
            for a in range(size):
                total += p[a] * W[chosen[a], y]
            q[y] = max(total, NEVER)
            logs[y] = math.log(q[y])
            mass += q[y]
        most, mean = -math.inf, 0.0
        for a in range(size):
            cross = dot(W[chosen[a]], logs)
            D[a] = own[chosen[a]] - cross + mass
            error = (2 * outputs + 32) * U * (abs(own[chosen[a]]) + abs(cross) + 4.0)
            most = max(most, D[a] + error)
            mean += p[a] * D[a]
        if most <= level:
            return True
        if mean > level:
            return False
        for a in range(size):
            for y in range(outputs):
                V[a, y] = (W[chosen[a], y] - q[y]) / math.sqrt(q[y])
            for b in range(a + 1):
                M[a, b] = dot(V[a], V[b])
        _newton(M, D, size, step, spare)
        share = 1.0
        for a in range(size):
            if step[a] < 0.0:
                share = min(share, -ROOM * p[a] / step[a])
        for a in range(size):
            p[a] += share * step[a]
    return False


@helper()
def _take(W, own, logs, q, level, slot, masks, first):
    """Replace the distribution at a slot of the list. Bits of row x are at first + x."""
    word, bit = slot // 64, np.uint64(1) << np.uint64(slot % 64)
    mass = 0.0
    for y in range(q.size):
        mass += q[y]
    for x in range(W.shape[0]):
        cross = dot(W[x], logs)
        error = (2 * q.size + 32) * U * (abs(own[x]) + abs(cross) + 4.0)
        if own[x] - cross + mass + error > level:
            masks[first + x, word] |= bit
        else:
            masks[first + x, word] &= ~bit


@helper()
def _beaten(masks, first, chosen, size, free):
    """Write the distributions that bound all chosen rows."""
    for word in range(free.size):
        total = np.uint64(0)
        for a in range(size):
            total |= masks[first + chosen[a], word]
        free[word] = ~total


@helper()
def _bounded(masks, x, free):
    """Whether some of the distributions ``free``, which bound the chosen rows, bounds row x."""
    for word in range(free.size):
        if free[word] & ~masks[x, word]:
            return True
    return False


@helper()
def _sums(Z, chosen, size, sums):
    """Write the sum of affinities of each chosen row with the others; return the total."""
    total = 0.0
    for a in range(size):
        sums[a] = 0.0
    for a in range(size):
        for b in range(a):
            z = Z[chosen[a], chosen[b]]
            sums[a] += z
            sums[b] += z
            total += z
    return total


@helper(error_model="numpy")
def _alike(Z, chosen, size, c, sums, total, test):
    """Whether the affinities of the chosen rows and row c prove that all carry at most a level."""
    own, squares = 0.0, 0.0
    for a in range(size):
        z = Z[chosen[a], c]
        own += z
        squares += (sums[a] + z) * (sums[a] + z)
    S = total + own
    if test[0] >= S:
        return False
    T = min(S, test[1])
    spread = squares + own * own - 4.0 * S * S / (size + 1)
    return spread * T * T <= S * S * test[4] * (test[2] - test[3] * T) * (T - test[0])


@helper()
def _vain(proofs, tries):
    """Whether too few of the selections tried are proved; some are tried in any case."""
    return tries % SAMPLED != 0 and tries > 16 * SAMPLED and proofs * GOOD * SAMPLED < tries


@kernel(error_model="numpy")
def list_cliques(
    W: Matrix,
    own: Vector,
    edges: Ints,
    rows: Ints,
    kind: Ints,
    compatible: BoolMatrix,
    pairs: Matrix,
    Z: Matrix,
    tests: Matrix,
    level: Vector,
    masks: WordMatrix,
    lists: IntMatrix,
    sizes: IntMatrix,
    place: Ints,
    state: Ints,
    budget: int,
    out: IntMatrix,
) -> int:
    """List selections that are not proved to have a capacity of at most ``level[m]``.

    Continues where the last call stopped. ``state`` holds the depth (-1 at the end), and then for
    every depth the number of proofs. Every depth has its own list of distributions, whose bits for
    row x are ``masks[depth * R + x]``. ``lists[j, edges[s]:][:sizes[j, s]]`` are the rows of slice
    s that are compatible with the first j rows; the next to try at depth j is
    ``place[j]``. Slices of one ``kind`` are equal, and their rows are taken in increasing order.
    ``tests[j]`` are the numbers of a test by affinities for j rows. For three rows it holds if the
    bounds on all ``pairs`` are at most the last number; for more rows that is known beforehand.
    Stops when ``out`` is full or the budget, in candidates, is used up. Returns the number listed.
    """
    slices, outputs, slots = edges.size - 1, W.shape[1], 64 * masks.shape[1]
    chosen = np.empty(slices, np.int64)
    free = np.empty(masks.shape[1], np.uint64)
    q, logs, V = np.empty(outputs), np.empty(outputs), np.empty((slices, outputs))
    M, over, sums = np.empty((slices, slices)), np.empty((4, slices)), np.empty(slices)
    depth, used, listed = state[0], 0, 0
    for j in range(depth):
        chosen[j] = lists[j, edges[j] + place[j] - 1]
    inputs = W.shape[0]
    _beaten(masks, max(depth, 0) * inputs, chosen, max(depth, 0), free)
    while depth >= 0 and used < budget and listed < out.shape[0]:
        if place[depth] >= sizes[depth, depth]:
            depth -= 1
            if depth >= 0:
                _beaten(masks, depth * inputs, chosen, depth, free)
            continue
        x = lists[depth, edges[depth] + place[depth]]
        place[depth] += 1
        used += 1
        chosen[depth] = x
        if depth >= 2 and level[depth + 1] > 0.0:
            first = depth * inputs
            if _bounded(masks, first + x, free):
                continue
            state[1 + slices + depth] += 1
            if depth < slices - 1 and _vain(state[1 + depth], state[1 + slices + depth]):
                proved = False
            else:
                used += COST
                proved = _proved(W, own, chosen, depth + 1, level[depth + 1], q, logs, V, M, over)
            if proved:
                state[1 + depth] += 1
                if state[1 + depth] % OFTEN == 0:
                    slot = state[1 + depth] // OFTEN % slots
                    _take(W, own, logs, q, level[depth + 1], slot, masks, first)
                    _beaten(masks, first, chosen, depth, free)
                    used += inputs
                continue
        if depth == slices - 1:
            for a in range(slices):
                out[listed, a] = rows[chosen[a]]
            listed += 1
            continue
        alive, test = True, tests[depth + 2]
        total = _sums(Z, chosen, depth + 1, sums)
        tested = depth > 0 and test[0] < math.inf
        if depth == 1 and pairs[chosen[0], x] > test[5]:
            tested = False
        for s in range(depth + 1, slices):
            first, size = edges[s], 0
            used += sizes[depth, s]
            for k in range(first, first + sizes[depth, s]):
                c = lists[depth, k]
                if compatible[x, c] and (kind[s] != kind[depth] or c >= x):
                    if (
                        tested
                        and (depth > 1 or max(pairs[chosen[0], c], pairs[x, c]) <= test[5])
                        and _alike(Z, chosen, depth + 1, c, sums, total, test)
                    ):
                        continue
                    lists[depth + 1, first + size] = c
                    size += 1
            sizes[depth + 1, s] = size
            if size == 0:
                alive = False
                break
        if alive:
            depth += 1
            place[depth] = 0
            _beaten(masks, depth * inputs, chosen, depth, free)
    state[0] = depth
    return listed
