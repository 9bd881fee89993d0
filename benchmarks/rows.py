"""Print a short table of the calls that people make in loops, ours beside others, in one run.

``python benchmarks/rows.py`` measures every row; words select rows by their question.
``--save FILE`` keeps the times, and ``--before FILE`` shows the times of an earlier run beside
these. Contenders are called in turns in one process; a time is the smallest of its rounds. Objects
are made before the clock starts, unless the question says that they are made. So are kernels, which
is the subject of ``cold_start.py``. ``--cpu`` measures the time of the processor, all threads added
up, for a machine that is not idle.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import bench_programs
import fastpriv as fp
import instances
from bench_batches import EPSILON, MEASURES
from fastpriv._core.warm_up import load_kernels
from fastpriv.kernels.loader import FILES
from tables import duration, table

#: Seconds of one round of short calls, and of all rounds of a contender.
ROUND, TOTAL = 0.003, 0.1
#: Matrices of the stacks.
COUNT = 1 << 16


def numpy_svd(W, p):
    """Second singular value of the normalised joint distribution."""
    q = p @ W
    return np.linalg.svd(np.sqrt(p)[:, None] * W / np.sqrt(q), compute_uv=False)[1]


def numpy_collusion(joint, first, second):
    """I(X; Y, Z) of two channels by numpy."""
    p = joint.sum(axis=1)
    both = (first[:, None, :, None] * second[None, :, None, :]).reshape(-1, first.shape[1] ** 2)
    joint_of = (joint.reshape(-1)[:, None] * both).reshape(*joint.shape, -1).sum(axis=1)
    q = joint_of.sum(axis=0)
    return (joint_of * np.log(joint_of / np.outer(p, q))).sum()


def qif(path):
    """A function of qif, or None where it is not installed."""
    try:
        import qif as module
    except ImportError:
        return None
    for name in path.split("."):
        module = getattr(module, name)
    return module


def single():
    """Rows of one matrix: question, unit, ours, others, time wanted."""
    W, p = instances.channel(8), instances.prior(8)
    one, prior = fp.Channel(W), fp.Dense(p)
    yield (
        "individual_capacity 8 x 8",
        partial(fp.individual_capacity, one),
        {"channel_capacity": partial(fp.channel_capacity, one)},
        20e-6,
    )
    yield "audit 8 x 8 with prior", partial(fp.audit, one, prior), {}, 3e-3
    joint = instances.prior(64).reshape(8, 8)
    second = instances.channel(8, seed=1)
    yield (
        "collusion of two 8 x 8",
        partial(fp.collusion, joint, one, fp.Channel(second)),
        {"numpy": partial(numpy_collusion, joint, W, second)},
        500e-6,
    )
    for size in (16, 64):
        V, r = instances.channel(size), instances.prior(size)
        yield (
            f"maximal_correlation {size} x {size}",
            partial(fp.maximal_correlation, fp.Channel(V), fp.Dense(r)),
            {"numpy's SVD": partial(numpy_svd, V, r)},
            "numpy's SVD",
        )
    for size in (2, 8, 48):
        V, r = instances.channel(size), instances.prior(size)
        channel, law = fp.Channel(V), fp.Dense(r)
        total = {"np.sum": partial(np.sum, V)}
        yield f"pml {size} x {size}", partial(fp.pml, channel, law), total, 8e-6
        yield (
            f"worst_leakage_factor {size} x {size}",
            partial(fp.worst_leakage_factor, channel, law),
            total,
            8e-6,
        )
        yield (
            f"contraction_coefficient {size} x {size}",
            partial(fp.contraction_coefficient, channel),
            total,
            8e-6,
        )
    yield from against_qif(W, p)
    for size in (2, 64):
        V, r = instances.channel(size), instances.prior(size)
        channel, law = fp.Channel(V), fp.Dense(r)
        yield (
            f"output distribution {size} x {size}",
            partial(channel.output, law),
            {"numpy": partial(np.matmul, r, V), "numpy, p @ W": lambda r=r, V=V: r @ V},
            "numpy, p @ W",
        )
    two = [instances.channel(2, seed=seed) for seed in range(20)]
    made = [fp.Channel(matrix) for matrix in two]
    yield (
        "channel_capacity 2 x 2, 20 Channels",
        lambda: [fp.channel_capacity(each) for each in made],
        {},
        20 * 5.7e-6,
    )
    yield (
        "channel_capacity 2 x 2, 20 arrays",
        lambda: [fp.channel_capacity(each) for each in two],
        {},
        20 * 7.9e-6,
    )


def against_qif(W, p):
    """Rows whose questions qif answers."""
    channel, prior = fp.Channel(W), fp.Dense(p)
    gain = instances.uniform([3, 8, 8], 64).reshape(8, 8)
    posterior, g_posterior = qif("measure.bayes_vuln.posterior"), qif("measure.g_vuln.posterior")
    hyper, refined = qif("channel.hyper"), qif("refinement.refined_by")
    twice = np.hstack([0.25 * W, 0.75 * W])
    processed = W @ instances.channel(8, seed=1)
    for name, mine, other in (
        (
            "posterior_vulnerability 8 x 8",
            partial(fp.posterior_vulnerability, channel, prior),
            posterior and partial(posterior, p, W),
        ),
        (
            "posterior g-vulnerability 8 x 8",
            partial(fp.posterior_vulnerability, channel, prior, gain),
            g_posterior and partial(g_posterior, gain, p, W),
        ),
        ("hyper 8 x 8", partial(fp.hyper, channel, prior), hyper and partial(hyper, W, p)),
        (
            "hyper 8 x 16, columns twice",
            partial(fp.hyper, fp.Channel(twice), prior),
            hyper and partial(hyper, twice, p),
        ),
        (
            "refines 8 x 8, a processing",
            partial(fp.refines, channel, fp.Channel(processed)),
            refined and partial(refined, W, processed),
        ),
    ):
        yield name, mine, {"qif": other} if other else {}, "qif"


def checked():
    """Rows of the fast path: a Channel and a Dense made once."""
    W, p = instances.channel(8), instances.prior(8)
    channel, prior = fp.Channel(W), fp.Dense(p)
    for measure in (
        fp.dp_level,
        fp.maximal_leakage,
        fp.leakage_capacity,
        fp.strong_dp_level,
        partial(fp.hockey_stick, epsilon=EPSILON),
    ):
        name = getattr(measure, "__name__", "hockey_stick")
        yield f"{name} 8 x 8, checked", partial(measure, channel), {}, 3e-6
    for measure in (
        fp.mutual_information,
        fp.identifiability_level,
        fp.information_privacy_level,
        fp.max_information,
        fp.pml_level,
        fp.pml,
        fp.leakage_factor,
        fp.worst_leakage_factor,
        fp.posterior_vulnerability,
        fp.distortion,
    ):
        yield f"{measure.__name__} 8 x 8, checked", partial(measure, channel, prior), {}, 3e-6


def others():
    """Rows of the other functions that people call in loops, without a time wanted."""
    W, p = instances.channel(8), instances.prior(8)
    channel, prior = fp.Channel(W), fp.Dense(p)
    gain, labels = np.eye(8)[:3], [0, 0, 0, 1, 1, 1, 2, 2]
    other = fp.Channel(instances.channel(8, seed=1))
    records = fp.Channel(instances.channel(8), [2] * 3)
    bits = fp.Dense(p, [2] * 3)
    for name, call in {
        "sdpi_constant 8 x 8": partial(fp.sdpi_constant, channel, prior, time_limit=None),
        "hockey_stick_epsilon 8 x 8": partial(fp.hockey_stick_epsilon, channel, 1e-6),
        "g_leakage 8 x 8": partial(fp.g_leakage, channel, prior, gain),
        "vulnerability of 8": partial(fp.vulnerability, prior),
        "conditional_pml 3 bits": partial(fp.conditional_pml, records, bits, {0: 0}),
        "row_pml 3 bits": partial(fp.row_pml, records, bits, 0),
        "row_information 3 bits": partial(fp.row_information, records, bits, 0),
        "pml 8 x 8 of an attribute": partial(fp.pml, channel, prior, attribute=labels),
        "mutual_information 8 x 8 of an attribute": partial(
            fp.mutual_information, channel, prior, attribute=labels
        ),
        "individual_capacity 3 bits": partial(fp.individual_capacity, records),
        "constrained_capacity 8 x 8": partial(fp.constrained_capacity, channel, 1.0),
        "error_probability_bound of 8": partial(fp.error_probability_bound, 0.3, prior),
        "discloses 8 x 8": partial(fp.discloses, channel, labels, prior),
        "singles_out 8 x 8": partial(fp.singles_out, channel),
        "disclosure_threshold of 8": partial(fp.disclosure_threshold, prior),
        "refines 8 x 8, not a processing": partial(fp.refines, channel, other),
        "implications of dp": partial(fp.implications, 0.5, "dp", prior=prior),
    }.items():
        yield name, call, {}, None


def stacks():
    """Rows of 65,536 matrices."""
    stack = instances.channels(COUNT, 8, 8)
    priors = instances.channels(COUNT, 1, 8)[:, 0].copy()
    out, copied = np.empty(COUNT), np.empty_like(stack)
    copy = partial(np.copyto, copied, stack)
    names = {"worst_leakage_factor", "leakage_factor", "maximal_leakage", "mutual_information"}
    names |= {"pml_level"}
    kept = [each for each in MEASURES if each[0].__name__ in names]
    for measure, further, takes_prior, plain in kept:
        given = (stack, priors) if takes_prior else (stack,)
        yield (
            f"{measure.__name__} of 65,536 8 x 8",
            partial(measure, *given, *further, out=out),
            {"numpy": partial(plain, *given), "copy": copy},
            ("numpy", 5.0),
        )
    sums = [
        partial(measure, *((stack, priors) if takes_prior else (stack,)), *further)
        for measure, further, takes_prior, _ in MEASURES
        if measure is not fp.hockey_stick
    ]
    yield (
        "audit_many of 65,536 8 x 8",
        partial(fp.audit_many, stack, priors),
        {"sum of measures": lambda: [each() for each in sums]},
        ("sum of measures", 0.5),
    )


def programs():
    """Rows of programs."""
    prior = fp.Dense(instances.even_prior(16), [2] * 4)
    yield (
        "PD-DP, N = 16, auto",
        partial(fp.solve_pd_dp, prior, 1.0),
        {
            "interior": partial(fp.solve_pd_dp, prior, 1.0, solver="interior"),
            "highs": partial(fp.solve_pd_dp, prior, 1.0, solver="highs"),
            "raw HiGHS simplex": partial(bench_programs.with_highs, "simplex", prior),
            "raw HiGHS IPM": partial(bench_programs.with_highs, "ipm", prior),
        },
        "raw HiGHS simplex",
    )
    bits = fp.Dense(instances.prior(16), [2] * 4)
    points = np.linspace(0.2, 1.2, 5)
    yield (
        "tradeoff_curve, 5 points, 4 bits",
        partial(fp.tradeoff_curve, bits, ["dp"], points),
        {},
        60e-3,
    )
    yield (
        "privacy_level, 4 bits, dp",
        partial(fp.privacy_level, bits, 0.6, "dp"),
        {},
        60e-3,
    )


TOPICS = {
    "single": single,
    "checked": checked,
    "others": others,
    "stacks": stacks,
    "programs": programs,
}


def best(calls, clock):
    """Smallest seconds of one call of each contender, called in turns."""
    counts, least, spent = [], [], []
    for call in calls:
        for _ in range(3):
            call()
        start = clock()
        call()
        seconds = clock() - start
        counts.append(max(1, int(ROUND / max(seconds, 1e-7))))
        least.append(seconds)
        spent.append(0.0)
    rounds = 0
    while rounds < 3 or min(spent) < TOTAL:
        for place, call in enumerate(calls):
            if rounds >= 3 and spent[place] >= TOTAL:
                continue
            start = clock()
            for _ in range(counts[place]):
                call()
            seconds = clock() - start
            spent[place] += seconds
            least[place] = min(least[place], seconds / counts[place])
        rounds += 1
    return least


def target(wanted, others):
    """The time wanted: a number, a contender, or a contender's over a factor."""
    if isinstance(wanted, str):
        return others.get(wanted)
    if isinstance(wanted, tuple):
        return others[wanted[0]] / wanted[1] if wanted[0] in others else None
    return wanted


def measured(words, clock):
    """Yield the record of every row."""
    for topic in TOPICS.values():
        for question, mine, others, wanted in topic():
            if words and not any(word in question for word in words):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds = best([mine, *others.values()], clock)
            names = dict(zip(others, seconds[1:], strict=True))
            yield {
                "question": question,
                "ours": seconds[0],
                "others": names,
                "wanted": target(wanted, names),
            }


def report(records, before):
    """A Markdown table."""
    rows = []
    for record in records:
        others = "; ".join(f"{name} {duration(s)}" for name, s in record["others"].items())
        wanted = record["wanted"]
        met = "" if wanted is None else ("yes" if record["ours"] <= 1.1 * wanted else "no")
        earlier = before.get(record["question"])
        rows.append(
            [
                record["question"],
                *([duration(earlier)] if before else []),
                duration(record["ours"]),
                others,
                duration(wanted),
                met,
            ]
        )
    return table(
        ["question", *(["before"] if before else []), "ours", "others", "wanted", "met"], rows
    )


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="measure rows whose question contains one")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the times as JSON")
    parser.add_argument("--before", type=Path, metavar="FILE", help="times to print beside these")
    parser.add_argument("--cpu", action="store_true", help="time of the processor")
    given = parser.parse_args()
    before = {}
    if given.before:
        before = {r["question"]: r["ours"] for r in json.loads(given.before.read_text())}
    load = os.getloadavg()[0]
    load_kernels(*FILES, interpret=False)
    records = []
    clock = time.process_time if given.cpu else time.perf_counter
    for record in measured(given.words, clock):
        records.append(record)
        print(f"{record['question']}: {duration(record['ours'])}", file=sys.stderr, flush=True)
    name = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(fp.__file__).parent,  # of the package that was measured
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    loads = f"load {load:.2f} before and {os.getloadavg()[0]:.2f} after"
    print(f"Revision {name or fp.__version__}, {loads}.\n")
    print(report(records, before))
    if given.save:
        given.save.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
