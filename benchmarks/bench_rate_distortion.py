"""Rate-distortion against qif, dit and Blahut's plain iteration.

Priors are random and dense on n bits, many outputs die out; the distance is Hamming's. Every gap is
measured from the bound that we prove.
"""

import math
import time
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes, yardstick
from fastpriv.design.mixture import HammingTilt, certify

SLOPE, GAP = 1.0, 1e-9


def with_qif(p, metric):
    """Blahut's iteration in C++, with a loss in Python."""
    import qif

    flat = np.full(len(metric), 1.0 / len(metric))
    solve = qif.mechanism.shannon.max_entropy_given_same_loss
    return np.asarray(solve(p, flat, lambda x, y: float(SLOPE * metric[x, y]), GAP))


def with_dit(restarts, p, metric):
    """Blahut's iteration in numpy, from some random starts."""
    from dit.rate_distortion.blahut_arimoto import blahut_arimoto

    _, joint = blahut_arimoto(
        p, SLOPE / math.log(2), lambda *_: metric, max_iters=10**5, restarts=restarts
    )
    return joint / joint.sum(axis=1, keepdims=True)


#: Name, distribution, solver, and largest number of bits that takes less than minutes.
PEERS = [
    ("qif", "qif", with_qif, 7),  # no answer in 200 s at 8 bits
    ("dit, one start", "dit", partial(with_dit, 1), 10),
    ("dit, 100 starts", "dit", partial(with_dit, 100), 6),
]


def plain_gap(prior, seconds):
    """Gap that q <- q c reaches in a time, with our own transforms."""
    p, tilt = prior.pmf().copy(), HammingTilt(prior.space.sizes, SLOPE)
    q = np.full(len(p), 1.0 / len(p))
    end = time.perf_counter() + seconds
    while True:
        v = tilt.forward(q)
        c = tilt.backward(p / v)
        if time.perf_counter() > end:
            value, bound = certify(p, q, tilt, v, c)
            return value - bound
        q *= c


def own_gap(point):
    """Value and gap of our solution."""
    return {"value": point.value, "error": point.value - point.bound}


@pytest.mark.parametrize("bits", sizes(6, large=[7, 8, 10]))
def test_slope(versus, bits):
    """The Lagrangian of slope 1, which peers solve."""
    p, metric = instances.prior(2**bits), instances.hamming(bits)
    prior = fp.Dense(p, [2] * bits)
    best = fp.solve_pd_mip(prior, slope=SLOPE)
    bound = best.bound + SLOPE * best.distortion

    def judge(matrix):
        channel = fp.Channel(matrix, prior.space)
        information = fp.mutual_information(channel, prior)
        return {
            "value": information,
            "error": information + SLOPE * fp.distortion(channel, prior) - bound,
        }

    for name, solve in (
        ("", partial(fp.solve_pd_mip, prior, slope=SLOPE)),
        (", given as a matrix", partial(fp.solve_pd_mip, prior, slope=SLOPE, metric=metric)),
    ):
        versus(
            "rate-distortion at slope 1",
            f"random prior, {bits} bits, Hamming{name}",
            ours(solve, own_gap),
            *(
                peer(
                    title,
                    partial(other, p, metric),
                    judge,
                    needs=needs,
                    skip="minutes at this size" if bits > most else None,
                )
                for title, needs, other, most in PEERS
                if name == ""
            ),
            seed=0,
            error_of="gap, nats",
            target=GAP,
        )


@pytest.mark.parametrize("bits", sizes(12, large=[16, 20]))
def test_distortion(versus, bits):
    """A given distortion at large sizes, beside Blahut's iteration at slope 1, in the same time."""
    prior = fp.Dense(instances.prior(2**bits), [2] * bits)
    start = time.perf_counter()
    fp.solve_pd_mip(prior, 0.25 * bits)
    seconds = time.perf_counter() - start
    versus(
        "rate-distortion at D = n/4",
        f"random prior, {bits} bits, Hamming",
        ours(partial(fp.solve_pd_mip, prior, 0.25 * bits), own_gap),
        yardstick(
            "Blahut, same time",
            partial(plain_gap, prior, seconds),
            judge=lambda gap: {"error": gap},
        ),
        seed=0,
        error_of="gap, nats",
        target=GAP,
    )
