"""What a ledger must do, in fractions and loops."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from oracles.spaces import neighbour_pairs


def exact(level):
    """The number a float is printed as."""
    return Fraction(Decimal(repr(level)))


def accept(budget, levels):
    """Which of the levels fit one after the other, and their exact sum."""
    total, taken = Fraction(0), []
    for level in levels:
        fits = total + exact(level) <= exact(budget)
        taken.append(fits)
        total += exact(level) if fits else 0
    return taken, total


def truth(W, p, sizes):
    """Level of a channel in every notion that has a sum law, from the definitions."""
    W = np.asarray(W)
    K = W.shape[1]
    q = p @ W
    near = neighbour_pairs(sizes)
    posterior = p[:, None] * W / q
    ratio = {(x, z): max(math.log(W[x, y] / W[z, y]) for y in range(K)) for x, z in near}
    strong = max(math.log(W[:, y].max() / W[:, y].min()) for y in range(K))
    odds = np.log(posterior / p[:, None])
    divergence = [float((posterior[:, y] * odds[:, y]).sum()) for y in range(K)]
    information = float(q @ divergence)
    entropy = -float((p * np.log(p)).sum())
    return {
        "strong-dp": strong,
        "dp": max(ratio.values()),
        "product-row-pml": max(ratio.values()),
        "product-row-max-information": max(ratio.values()),
        "identifiability": max(
            math.log(posterior[x, y] / posterior[z, y]) for x, z in near for y in range(K)
        ),
        "pml-all-priors": strong,
        "information-privacy": float(np.abs(odds).max()),
        "pml": float(odds.max()),
        "divergence": max(divergence),
        "maximal-leakage": math.log(W.max(axis=0).sum()),
        "mutual-information": information,
        "leakage-factor": information / entropy,
    }
