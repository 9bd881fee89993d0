"""Plain references for information about one row under priors that keep an entropy.

W[x, y] = p(y|x), databases in C order. Nothing here knows how the library searches.
"""

import math

import numpy as np

from oracles.information import joint_information
from oracles.numbers import normal, num


def value_of_row(sizes, i):
    """Value of row i in every database."""
    return np.indices(sizes)[i].reshape(-1)


def informations(W, sizes, priors):
    """I(X_i; Y) of many priors, an array with a row for each i, from the joint laws."""
    found = []
    for i, m in enumerate(sizes):
        where = value_of_row(sizes, i)
        joint = np.stack([priors[:, where == a] @ W[where == a] for a in range(m)], axis=1)
        product = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
        ratio = np.divide(joint, product, out=np.ones_like(joint), where=joint > 0.0)
        found.append((joint * np.log(ratio)).sum(axis=(1, 2)))
    return np.array(found)


def entropies(priors):
    """H of many priors."""
    return -(priors * np.log(np.where(priors > 0.0, priors, 1.0))).sum(axis=1)


def exact_information(W, sizes, i, prior):
    """I(X_i; Y) in 50 digits."""
    where, p, outputs = value_of_row(sizes, i), normal(prior), range(len(W[0]))
    values = [[x for x in range(len(p)) if where[x] == a] for a in range(sizes[i])]
    return joint_information(
        [[sum(p[x] * num(W[x][y]) for x in xs) for y in outputs] for xs in values]
    )


def random_priors(rng, W, count):
    """Priors of all kinds: flat, peaked, and those that follow the outputs in some direction."""
    size = len(W)
    third = count // 3
    flat = rng.dirichlet(np.ones(size), third)
    peaked = rng.dirichlet(np.full(size, 0.15), third)
    rest = count - 2 * third
    scores = rng.normal(size=(rest, W.shape[1])) @ W.T + 0.2 * rng.normal(size=(rest, size))
    scores *= rng.exponential(6.0, size=(rest, 1))
    tilted = np.exp(scores - scores.max(axis=1, keepdims=True))
    priors = np.concatenate([flat, peaked, tilted / tilted.sum(axis=1, keepdims=True)])
    even = rng.random((count, 1)) ** 4
    return (1.0 - even) * priors + even / size


def whole_database(W, b, steps=2000):
    """max {I(X; Y): H(X) >= b}, a concave problem: alternate with the posterior, bisect on t."""

    def best(t, p):
        for _ in range(steps):
            q = p @ W
            ratio = np.divide(W, q, out=np.ones_like(W), where=W > 0.0)
            score = (W * np.log(ratio)).sum(axis=1) + np.log(np.maximum(p, 1e-300))
            new = np.exp((score - score.max()) / (1.0 + t))
            new /= new.sum()
            if np.abs(new - p).max() < 1e-13:
                break
            p = new
        return p

    def value(p):
        return float(informations(W, (len(W),), p[None])[0, 0])

    p = best(0.0, np.full(len(W), 1.0 / len(W)))
    if entropies(p[None])[0] >= b:
        return value(p)
    low, high = -8.0, 6.0
    for _ in range(36):
        middle = 0.5 * (low + high)
        p = best(math.exp(middle), p)  # the last one is a good start
        if entropies(p[None])[0] < b:
            low = middle
        else:
            high = middle
    return value(best(math.exp(high), p))


def stationary_prior(W, where, t, prior, steps=3000):
    """Ascend to a stationary prior of I(A; Y) + t H(X) for the value A = where of a row.

    By turns: the best decoder ln P(a | y) of the prior, and the best prior of the decoder.
    """
    values = range(int(where.max()) + 1)
    for _ in range(steps):
        joint = np.stack([prior[where == a] @ W[where == a] for a in values])
        told = np.log(joint / joint.sum(axis=0))
        g = (W * told[where]).sum(axis=1) / t
        top = np.array([g[where == a].max() for a in values])
        inner = np.exp(g - top[where])
        total = np.array([inner[where == a].sum() for a in values])
        Z = t * (top + np.log(total)) / (1.0 + t)
        weight = np.exp(Z - Z.max())
        prior = inner / total[where] * (weight / weight.sum())[where]
    return prior


def ascended_information(W, sizes, b, starts, rng):
    """The largest I(X_i; Y) of stationary priors with an entropy of at least b."""
    best = 0.0
    for i in range(len(sizes)):
        where = value_of_row(sizes, i)
        for start in rng.dirichlet(np.full(len(W), 0.5), starts):
            low, high, prior = 1e-4, 10.0, start
            for _ in range(24):  # the entropy grows with t
                t = math.sqrt(low * high)
                now = stationary_prior(W, where, t, 0.99 * prior + 0.01 / len(W), 200)
                enough = entropies(now[None])[0] >= b
                low, high = (low, t) if enough else (t, high)
                if enough:
                    prior = now
            if entropies(prior[None])[0] >= b:
                best = max(best, informations(W, sizes, prior[None])[i, 0])
    return best


def joint_posteriors(W, where, laws):
    """P(y) and the chance of the value 0 given y, for many laws of the inputs."""
    P = laws @ W
    return P, (laws * (where == 0)) @ W / P


def relative_cost(laws, p, where, t):
    """t sum_a p'_a D(pi'_a || pi_a) + (1 + t) D(p'_A || alpha) of many laws p' relative to p."""
    cost = t * (laws * np.log(laws / p)).sum(axis=1)  # t D(p' || p) has t D(p'_A || alpha) in it
    for a in range(int(where.max()) + 1):
        own = laws[:, where == a].sum(axis=1)
        cost += own * np.log(own / p[where == a].sum())
    return cost


def cheapest_laws(p, where, t, scores):
    """The laws p' of largest sum p' score - cost relative to p, for many scores."""
    tilted = p * np.exp(scores / t)
    laws = np.empty_like(tilted)
    for a in range(int(where.max()) + 1):
        own, before = tilted[:, where == a], p[where == a].sum()
        mean = own.sum(axis=1, keepdims=True) / before
        laws[:, where == a] = own * mean ** (t / (1.0 + t) - 1.0)
    return laws / laws.sum(axis=1, keepdims=True)
