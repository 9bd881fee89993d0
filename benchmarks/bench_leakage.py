"""Leakage measures of a dense channel against one np.sum of it, and against qif and dit.

Then outputs of a million rows.
"""

import math
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes, yardstick

#: What qif has of it, by the name of our measure.
QIF = {
    "maximal_leakage": lambda of, p, W: math.log(of.bayes_vuln.mult_capacity(W)),
    "mutual_information": lambda of, p, W: of.shannon.add_leakage(p, W) * math.log(2),
}


def measures(channel, prior):
    """Name and call of everything timed."""
    return {
        "pml": lambda: fp.pml(channel, prior).max(),
        "maximal_leakage": partial(fp.maximal_leakage, channel),
        "leakage_capacity": partial(fp.leakage_capacity, channel),
        "information_privacy_level": partial(fp.information_privacy_level, channel, prior),
        "dp_level": partial(fp.dp_level, channel),
        "mutual_information": partial(fp.mutual_information, channel, prior),
        "worst_leakage_factor": partial(fp.worst_leakage_factor, channel, prior),
    }


def with_qif(name, p, W):
    """The same measure by qif."""
    import qif

    return QIF[name](qif.measure, p, W)


def with_dit(p, W):
    """Mutual information by dit, of a joint law that is made once."""
    import dit

    outcomes = [f"{chr(x + 48)}{chr(y + 48)}" for x, y in np.ndindex(*W.shape)]
    law = dit.Distribution(outcomes, (p[:, None] * W).reshape(-1))
    return lambda: math.log(2) * dit.shannon.mutual_information(law, [0], [1])


def value(answer):
    """The answer."""
    return {"value": float(answer)}


@pytest.mark.parametrize("size", sizes(48, large=[8, 1024, 4096]))
def test_matrix(versus, size):
    """Measures of one matrix."""
    W, p = instances.channel(size), instances.prior(size)
    for name, work in measures(fp.Channel(W), fp.Dense(p)).items():
        others = [yardstick("np.sum", partial(np.sum, W))]
        if name in QIF:
            others.append(peer("qif", partial(with_qif, name, p, W), value, needs="qif"))
        if name == "mutual_information" and size == 48:
            make = partial(with_dit, p, W)
            others.append(peer("dit", make, value, needs="dit", made=True))
        versus(
            name,
            f"random {size} x {size}",
            ours(work, value),
            *others,
            seed=0,
        )


#: Priors of n bits.
PRIORS = {
    "independent rows": lambda n: fp.Product.iid([0.3, 0.7], n),
    "Markov chain": lambda n: fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n),
    "Markov chain with zeros": lambda n: fp.Markov([0.5, 0.5], [[0.0, 1.0], [0.2, 0.8]], n),
    "exchangeable bits": lambda n: fp.Exchangeable(instances.prior(n + 1)),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("n", sizes(10_000, large=[1_000_000]))
def test_one_output(versus, n, name):
    """One output of many rows."""
    channel, y = fp.HammingChannel(n, 2, 1.0), instances.codes(n, [2])[:, 0].astype(np.int64)
    prior = PRIORS[name](n)
    for kind, work in (
        ("pml of one output", partial(fp.pml, channel, prior, y=y)),
        ("row_pml of one output", partial(fp.row_pml, channel, prior, n // 2, y=y)),
    ):
        versus(kind, f"{n:,} rows, {name}", ours(work, value), seed=0)
