"""Bad input for every public function: ``python -m tests.fuzz.hostile --minutes 10``.

A good call of every function stands in ``GOOD``; a case replaces one or two of its arguments by
something hostile. What may happen: an answer without NaN, or an error of ours in one sentence.
Anything else is a violation: another exception, a warning, a NaN. With ``NUMBA_DISABLE_JIT=1``
kernels are plain Python, and only an index beyond the end of an array counts.
"""

import argparse
import collections
import datetime
import decimal
import fractions
import math
import re
import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import fastpriv as fp
from fastpriv.errors import FastprivError

W = [[0.75, 0.25], [0.25, 0.75]]
PAIR = fp.Channel([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]], fp.Space([2, 2]))
PRIOR = fp.Product([[0.6, 0.4], [0.3, 0.7]])
P = [0.4, 0.6]
GAIN = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
PROFILE = fp.accounting.PrivacyProfile.of(W)
RELEASED = fp.release([[0, 1], [1, 0]] * 50, domain=[2, 2], epsilon=3.0, rng=1)

#: A good call of every public function: positional arguments by name, so that each can be replaced.
GOOD = {
    fp.Space: {"sizes": [2, 3]},
    fp.Space.hamming: {"n": 2, "m": 3},
    fp.Channel: {"matrix": W, "space": None},
    fp.HammingChannel: {"n": 2, "m": 2, "epsilon": 1.0},
    fp.ProductChannel: {"factors": [W, W]},
    fp.PosteriorChannel: {"prior": PRIOR, "epsilon": 2.0},
    fp.TiltedChannel: {"law": PRIOR, "epsilon": 1.0},
    fp.QueryChannel: {"values": [0, 1, 1, 0], "kernel": W, "space": [2, 2]},
    fp.QueryChannel.count: {"n": 3, "kernel": [[0.9, 0.1], [0.5, 0.5], [0.4, 0.6], [0.1, 0.9]]},
    fp.Uniform: {"n": 2, "m": 2},
    fp.Product: {"marginals": [P, P]},
    fp.Product.iid: {"p": P, "n": 3},
    fp.Exchangeable: {"weights": [0.2, 0.3, 0.5]},
    fp.Exchangeable.beta_binomial: {"n": 3, "a": 1.0, "b": 2.0},
    fp.Markov: {"initial": P, "transition": W, "n": 3},
    fp.Dense: {"pmf": [0.1, 0.2, 0.3, 0.4], "sizes": [2, 2]},
    fp.estimate: {"samples": [[0, 1], [1, 1]], "kind": "product", "smoothing": 1.0},
    fp.dp_level: {"channel": W},
    fp.strong_dp_level: {"channel": W},
    fp.hockey_stick: {"channel": W, "epsilon": 0.5},
    fp.hockey_stick_epsilon: {"channel": W, "delta": 0.1},
    fp.identifiability_level: {"channel": W, "prior": P},
    fp.mutual_information: {"channel": W, "prior": P},
    fp.max_information: {"channel": W, "prior": P},
    fp.information_privacy_level: {"channel": W, "prior": P},
    fp.leakage_factor: {"channel": W, "prior": P},
    fp.worst_leakage_factor: {"channel": W, "prior": P},
    fp.error_probability_bound: {"factor": 0.5, "prior": P},
    fp.maximal_correlation: {"channel": W, "prior": P},
    fp.contraction_coefficient: {"channel": W},
    fp.sdpi_constant: {"channel": W, "prior": P},
    fp.pml: {"channel": W, "prior": P},
    fp.pml_level: {"channel": W, "prior": P},
    fp.row_pml: {"channel": PAIR, "prior": PRIOR, "i": 0},
    fp.conditional_pml: {"channel": PAIR, "prior": PRIOR, "given": {0: 1}},
    fp.maximal_leakage: {"channel": W},
    fp.leakage_capacity: {"channel": W},
    fp.discloses: {"channel": W, "attribute": [0, 1]},
    fp.singles_out: {"channel": PAIR},
    fp.disclosure_threshold: {"prior": P},
    fp.distortion: {"channel": W, "prior": P},
    fp.channel_capacity: {"channel": W, "gap": 1e-9},
    fp.capacity_prior: {"channel": W, "gap": 1e-9},
    fp.individual_capacity: {"channel": PAIR},
    fp.group_capacity: {"channel": PAIR, "k": 1},
    fp.max_individual_capacity: {"channel": PAIR, "priors": "all"},
    fp.constrained_capacity: {"channel": PAIR, "b": 0.5},
    fp.balance_function: {"channel": PAIR, "b": 0.5},
    fp.cross_capacity: {"channel": PAIR, "k": 1},
    fp.is_weakly_symmetric: {"channel": W},
    fp.is_data_independent: {"channel": W},
    fp.refines: {"a": W, "b": W, "prior": P},
    fp.vulnerability: {"prior": P, "gain": GAIN},
    fp.posterior_vulnerability: {"channel": W, "prior": P, "gain": GAIN},
    fp.g_leakage: {"channel": W, "prior": P, "gain": GAIN},
    fp.additive_g_leakage: {"channel": W, "prior": P, "gain": GAIN},
    fp.g_capacity: {"channel": W, "gain": GAIN},
    fp.additive_g_capacity: {"channel": W, "gain": GAIN},
    fp.gain_capacity: {"channel": W, "prior": P},
    fp.additive_gain_capacity: {"channel": W, "prior": P, "gains": "unit"},
    fp.hyper: {"channel": W, "prior": P},
    fp.leakage_from_counts: {"counts": [[7, 3], [2, 8]], "prior": P, "beta": 0.1},
    fp.leakage_from_samples: {"x": [0, 1], "y": [1, 0], "inputs": 2, "outputs": 2, "prior": P},
    fp.gains.tries: {"size": 3, "k": 2},
    fp.gains.penalty: {"size": 3, "loss": 1.0},
    fp.gains.distance: {"metric": [[0.0, 1.0], [1.0, 0.0]]},
    fp.gains.attribute: {"labels": [0, 1, 1]},
    (lambda first, second: fp.compose(first, second)): {"first": W, "second": W},
    fp.h: {"epsilon": 1.0, "n": 2, "m": 2},
    fp.h_inverse: {"distortion": 0.5, "n": 2, "m": 2},
    fp.solve_pd_dp: {"prior": PRIOR, "epsilon": 1.0},
    fp.solve_pd_i: {"prior": PRIOR, "epsilon": 2.0},
    fp.solve_pd_pml: {"prior": PRIOR, "epsilon": 0.5},
    fp.solve_pd_capacity: {"prior": PRIOR, "epsilon": 0.1, "priors": "all"},
    fp.solve_r_pd: {"n": 2, "m": 2, "epsilon": 1.0},
    fp.solve_pd_mip: {"prior": PRIOR, "distortion": 0.3},
    fp.privacy_level: {"prior": PRIOR, "distortion": 0.5, "notion": "dp"},
    fp.tradeoff_curve: {"prior": PRIOR, "notions": ["dp"], "distortions": [0.2, 0.5]},
    fp.design_mapping: {
        "joint": [[0.4, 0.1], [0.1, 0.4]],
        "metric": [[0.0, 1.0], [1.0, 0.0]],
        "distortion": 0.2,
    },
    fp.PriorSet.all: {"size": 2},
    fp.PriorSet.box: {"lower": [0.1, 0.1], "upper": [0.9, 0.9]},
    fp.PriorSet.polytope: {"A": [[1.0, 0.0]], "b": [0.7]},
    fp.PriorSet.bernoulli_interval: {"n": 2, "c": 0.2},
    fp.audit: {"channel": W, "prior": P},
    fp.audit_many: {"channels": [W, W], "priors": P},
    fp.compare: {"first": W, "second": W},
    fp.release: {"table": [[0, 1], [1, 0]] * 20, "domain": [2, 2], "epsilon": 3.0},
    fp.estimate_frequencies: {"released": RELEASED.table, "mechanism": RELEASED.report},
    fp.remaining_uncertainty: {"channel": W, "prior": P},
    fp.accounting.PrivacyProfile.of: {"channel": W},
    fp.accounting.PrivacyProfile.gaussian: {"noise_multiplier": 1.0, "sampling_probability": 0.5},
    fp.accounting.PrivacyProfile.laplace: {"noise_multiplier": 1.0, "sampling_probability": 1.0},
    fp.accounting.PrivacyProfile.discrete_gaussian: {"sigma": 1.0, "sensitivity": 1},
    fp.accounting.PrivacyProfile.discrete_laplace: {"noise_parameter": 1.0, "sensitivity": 1},
    fp.accounting.PrivacyProfile.exponential: {"epsilon": 1.0},
    fp.accounting.PrivacyProfile.zcdp: {"rho": 0.5},
    fp.accounting.PrivacyProfile.from_epsilon_delta: {"epsilon": 1.0, "delta": 1e-6},
    fp.accounting.PrivacyProfile.randomised_response: {"m": 3, "epsilon": 1.0},
    PROFILE.delta: {"epsilon": 0.5},
    PROFILE.epsilon: {"delta": 1e-3},
    PROFILE.self_compose: {"count": 3},
    fp.accounting.Ledger: {"budget": {"dp": 1.0}},
    fp.accounting.shuffled: {"channel": W, "n": 100},
    fp.accounting.compose_levels: {"notion": "dp", "levels": [0.5, 0.5]},
    fp.mechanisms.GeometricCount: {"n": 5, "epsilon": 1.0},
    fp.mechanisms.binary_symmetric: {"values": [0, 1], "p": 0.2, "space": [2]},
    fp.mechanisms.gaussian_delta: {"noise_variance": 1.0, "epsilon": 1.0},
    fp.mechanisms.gaussian_query_capacity: {"values": [0.0, 1.0], "sigma": 1.0, "space": [2]},
    fp.mechanisms.laplace_query_capacity: {"values": [0.0, 1.0, 3.0], "scale": 1.0, "space": [3]},
    fp.mechanisms.laplace_query_leakage: {"values": [0.0, 1.0], "scale": 1.0},
}

#: Priors that are right and hard: zeros, denormals, nearly uniform, periodic, one row, one value.
ODD = [
    fp.Dense([0.0, 0.5, 0.0, 0.5], [2, 2]), fp.Dense([1.0, 5e-324, 1e-300, 1e-16], [2, 2]),
    fp.Dense([0.25, 0.25000000000000006, 0.24999999999999994, 0.25], [2, 2]), fp.Uniform(1, 1),
    fp.Product([[1.0, 0.0], [0.5, 0.5]]), fp.Product([[1.0], [1e-320, 1.0]]),
    fp.Markov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 3),
    fp.Markov([0.5, 0.5], [[1.0, 0.0], [1e-17, 1.0]], 2),
    fp.Exchangeable([0.0, 1.0, 0.0]), fp.Exchangeable([1.0 - 1e-16, 5e-324, 1e-16]),
    fp.Product.iid([1e-160, 1.0], 3),
]  # fmt: skip

HOSTILE = [
    None, True, False, math.nan, math.inf, -math.inf, -1, 0, -0.0, 0.0, 1, 2, 3, 0.5, 1e-320, 1e308,
    10**400, 2**63, 2**31, 1.5, "", "dp", "1", "nan", b"x", (), [], {}, set(), [[]], [[[]]],
    [math.nan], [math.inf, 1.0], [[math.nan, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0]], [0.5, 0.6],
    [-0.5, 1.5], [[2.0, -1.0], [0.5, 0.5]], [[0.5, 0.5]], [[1.0]], [1.0], [0.0, 0.0], [[0.0, 0.0]],
    [None], ["a", "b"], [["a"]], [1, [2]], {"a": 1}, {0: 5}, {5: 0}, {-1: 0}, object(), int, len,
    1j,
    [1j, 0], np.array(0.5), np.array([0.5, 0.5], dtype=object), np.zeros((0, 2)), np.zeros((2, 0)),
    np.ones((2, 2, 2, 2)), np.array(["x"]), np.float32(0.1), np.int8(-3), np.nan * np.ones((2, 2)),
    np.datetime64("2020-01-01"), datetime.date(2020, 1, 1), decimal.Decimal("0.1"),
    decimal.Decimal("NaN"), fractions.Fraction(1, 3), range(2), iter([0.5, 0.5]),
    np.ma.array([1.0]),
    W, PAIR, PRIOR, P, fp.Uniform(3, 2), fp.HammingChannel(40, 2, 1.0), fp.Uniform(40, 2), PROFILE,
    fp.PriorSet.all(2), *ODD, np.eye(3), np.eye(2)[::-1], np.random.default_rng(0), "\x00",
    "a" * 300,
]  # fmt: skip


def draw(seed, number):
    """Return a function and its arguments, one or two of them hostile."""
    rng = np.random.default_rng([seed, number])
    function = list(GOOD)[rng.integers(len(GOOD))]
    arguments = dict(GOOD[function])
    for name in rng.permutation(list(arguments))[: 1 + (rng.integers(5) == 0)]:
        value = HOSTILE[rng.integers(len(HOSTILE))]
        arguments[str(name)] = iter([0.5, 0.5]) if isinstance(value, type(iter([]))) else value
    return function, arguments


def outcome(function, arguments):
    """Return None, or what is wrong with what a call does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", fp.errors.GapWarning)  # it is meant: the gap is not met
        if numba.config.DISABLE_JIT:  # compiled kernels divide by zero in silence
            warnings.simplefilter("ignore", RuntimeWarning)
        try:
            result = function(**arguments)
        except FastprivError as error:
            return _sentence(str(error))
        except Exception as error:
            if numba.config.DISABLE_JIT and not isinstance(error, IndexError):
                return None  # what Python does otherwise than compiled code
            return f"{type(error).__name__}: {str(error)[:120]}"
    return "NaN" if _has_nan(result) else None


def _sentence(text):
    if not text or "\n" in text or "Traceback" in text:
        return f"not one sentence: {text[:120]!r}"
    return None


def _has_nan(result):
    if isinstance(result, float | np.ndarray):
        values = np.asarray(result)
        return values.dtype.kind == "f" and bool(np.isnan(values).any())
    if isinstance(result, fp.Bracket):
        return math.isnan(result.lower) or math.isnan(result.upper)
    return False


def search(seed, minutes, cases):
    """Call until time or number runs out; return how many, and what went wrong by kind."""
    start, number, wrong = time.monotonic(), 0, collections.defaultdict(list)
    while number < cases and time.monotonic() - start < 60.0 * minutes:
        function, arguments = draw(seed, number)
        before = time.process_time()  # of this process: a busy machine is not a hang
        problem = outcome(function, arguments)
        number += 1
        if time.process_time() - before > 20.0:
            problem = problem or f"took {time.process_time() - before:.0f} s"
        if problem:
            shape = re.sub(r"\d+", "#", problem)[:70]
            wrong[function.__qualname__, shape].append((number - 1, problem, arguments))
    return number, wrong, time.monotonic() - start


def main():
    """Run the search as a command: exit code 1 where something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, wrong, seconds = search(options.seed, options.minutes, options.cases)
    for (name, _), items in sorted(wrong.items(), key=lambda item: item[0]):
        case, problem, arguments = items[0]
        shown = ", ".join(f"{k}={v!r:.60}" for k, v in arguments.items())
        print(f"{name}({shown}), case {case}, {len(items)} like it:\n    {problem}")
    print(f"{number} calls in {seconds:.0f} s: {sum(map(len, wrong.values()))} went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
