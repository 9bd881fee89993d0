"""Gaps of the privacy programs over random priors and levels: met, or the caller is told.

    python benchmarks/gaps.py 10000 [--gap 1e-6] [--seed 0]

Every case is one random prior (dense, product, exchangeable or Markov) and one level, for PD-DP
and for PD-I. Reported are the worst certified gap of the solutions that claim to have converged,
and how many were flagged with a warning instead. Exit status 1 if any wide gap went unflagged.
"""

import argparse
import sys
import time
import warnings
from collections import Counter

import numpy as np

import fastpriv as fp


def drawn(rng):
    """Draw a prior of one of four kinds, up to 16 databases or 10 bits on types."""
    kind = rng.integers(4)
    if kind == 0:
        sizes = [(2, 2), (3,), (2, 3), (4,), (2, 2, 2), (5,), (2, 2, 2, 2), (3, 3), (8,)]
        shape = sizes[rng.integers(len(sizes))]
        pmf = rng.dirichlet(np.full(int(np.prod(shape)), rng.choice([0.3, 1, 5]))) + 1e-6
        return fp.Dense(pmf / pmf.sum(), shape)
    if kind == 1:
        laws = [
            rng.dirichlet(np.ones(rng.integers(2, 5))) + 1e-3 for _ in range(rng.integers(1, 4))
        ]
        return fp.Product([law / law.sum() for law in laws])
    if kind == 2:
        weights = rng.dirichlet(np.ones(rng.integers(2, 12))) + 1e-4
        return fp.Exchangeable(weights / weights.sum())
    initial, matrix = rng.dirichlet(np.ones(2)) + 0.01, rng.dirichlet(np.ones(2), 2) + 0.01
    matrix /= matrix.sum(axis=1, keepdims=True)
    return fp.Markov(initial / initial.sum(), matrix, int(rng.integers(2, 5)))


def main():
    """Solve, count and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--gap", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", fp.GapWarning)
    rng = np.random.default_rng(asked.seed)
    unflagged = 0
    for name, solve in (("PD-DP", fp.solve_pd_dp), ("PD-I", fp.solve_pd_i)):
        start, solvers, met, wide = time.perf_counter(), Counter(), 0.0, []
        for _ in range(asked.count):
            prior = drawn(rng)
            least = prior.epsilon_x() if solve is fp.solve_pd_i else 0.0
            solution = solve(prior, least + float(10 ** rng.uniform(-4, 1)), gap=asked.gap)
            solvers[solution.solver or solution.method] += 1
            if not solution.converged:
                wide.append(solution.gap)
            else:
                met = max(met, solution.gap)
                unflagged += solution.gap > asked.gap
        print(
            f"{name}: {asked.count} random priors and levels, gap {asked.gap:g} asked for; worst "
            f"gap unflagged {met:.1e}; {len(wide)} flagged, worst {max(wide, default=0.0):.1e}; "
            f"{dict(solvers)}; {time.perf_counter() - start:.0f} s",
            flush=True,
        )
    return int(unflagged > 0)


if __name__ == "__main__":
    sys.exit(main())
