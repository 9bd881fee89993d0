"""Leakage measures of a dense channel against one np.sum of it, and against qif and dit.

Then outputs of a million rows.
"""

import math
from functools import partial

import numpy as np

import fastpriv as fp
import instances
from _bench import ours, peer, run, yardstick

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


def value(found):
    """The answer."""
    return {"value": float(found)}


def dense(bench):
    """Measures of one matrix."""
    for size in bench.sizes((48,), (8, 48, 1024, 4096)):
        W, p = instances.channel(size), instances.prior(size)
        for name, work in measures(fp.Channel(W), fp.Dense(p)).items():
            others = [yardstick("np.sum", partial(np.sum, W))]
            if name in QIF:
                others.append(peer("qif", partial(with_qif, name, p, W), value, needs="qif"))
            if name == "mutual_information" and size == 48:
                make = partial(with_dit, p, W)
                others.append(peer("dit", make, value, needs="dit", made=True))
            bench.compare(
                name,
                f"random {size} x {size}",
                ours(work, value),
                *others,
                seed=0,
                headline=name in QIF and size in (48, 4096),
            )


def million(bench, n=1_000_000):
    """One output of a million rows."""
    channel, y = fp.HammingChannel(n, 2, 1.0), instances.codes(n, [2])[:, 0].astype(np.int64)
    made = {
        "independent rows": fp.Product.iid([0.3, 0.7], n),
        "Markov chain": fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n),
        "Markov chain with zeros": fp.Markov([0.5, 0.5], [[0.0, 1.0], [0.2, 0.8]], n),
        "exchangeable bits": fp.Exchangeable(instances.prior(n + 1)),
    }
    for name, prior in made.items():
        for kind, work in (
            ("pml of one output", partial(fp.pml, channel, prior, y=y)),
            ("row_pml of one output", partial(fp.row_pml, channel, prior, n // 2, y=y)),
        ):
            bench.compare(kind, f"10^6 rows, {name}", ours(work, value), seed=0)


def main(bench):
    """Ask both questions."""
    dense(bench)
    million(bench)


if __name__ == "__main__":
    run(main)
