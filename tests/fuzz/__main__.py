"""Draw cases from a seed until the time is over; print violations, smallest form, and a summary."""

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the references are modules of the tests' folder

from fuzz import claims, numbers, shrink, specs  # noqa: E402

CORPUS = HERE / "corpus.jsonl"
#: Cases in a row about one channel and one prior.
TOGETHER = 12
#: The plain references answer every so many cases as well.
CHECKED = 400
#: Most outcomes of several releases that are listed.
_OUTCOMES = 300


#: Every question, as often as its weight says.
WEIGHTED = [name for name, asked in claims.QUESTIONS.items() for _ in range(asked.weight)]


@lru_cache(maxsize=2)
def instance(seed, number, most):
    """Return a channel and a prior over at most so many databases."""
    rng = np.random.default_rng([seed, number])
    sizes = list(specs.SPACES[rng.integers(len(specs.SPACES))])
    if math.prod(sizes) > most:
        sizes = [2]
    channel = specs.random_channel(rng, sizes)
    own = channel["kind"] in ("tilted", "posterior") and rng.integers(2)
    return channel, channel["law"] if own else specs.random_prior(rng, sizes)


def case_of(seed, number, only=None):
    """Return one case, the same for a seed and a number whatever came before."""
    rng = np.random.default_rng([seed, number, 1])
    name = only or WEIGHTED[rng.integers(len(WEIGHTED))]
    channel, prior = instance(seed, number // TOGETHER, 10**4)
    most = claims.QUESTIONS[name].databases
    if math.prod(specs.sizes_of(channel)) > most:
        channel, prior = instance(seed, number // TOGETHER, most)
    outputs, count = specs.outputs_of(channel), int(rng.integers(1, 4))
    while count > 1 and math.comb(outputs + count - 1, count) > _OUTCOMES:
        count -= 1
    return {
        "question": name,
        "channel": channel,
        "prior": prior,
        "epsilon": numbers.epsilon(rng),
        "count": count,
        "part": [numbers.epsilon(rng), numbers.delta(rng)],
        "delta": numbers.delta(rng),
    }


def corpus():
    """Return the cases that once broke a claim."""
    return [json.loads(line) for line in CORPUS.read_text().splitlines()]


def search(seed, minutes, cases, only=None, keep=5, first=0, step=1):
    """Ask cases until time or number runs out; return how many of each, and what was broken."""
    start, asked, broken = time.monotonic(), Counter(), {}
    number = first
    while number < cases and time.monotonic() - start < 60.0 * minutes:
        spec = case_of(seed, number, only)
        asked[spec["question"]] += 1
        violation = claims.answer(spec, check=number % CHECKED == CHECKED - 1)
        if violation is not None:
            same = broken.setdefault((spec["question"], violation.kind), [])
            same.append((number, violation))
            if len(same) <= keep:
                print(f"case {number}: {violation}", flush=True)
        number += 1 if (number + 1) % TOGETHER else 1 + (step - 1) * TOGETHER
    return asked, broken, Counter(spec["question"] for spec in claims.UNDECIDED)


def _search(arguments):
    return search(*arguments)


def searched(options):
    """Search in one process or in several, which take bundles of cases in turn."""
    parts = [
        (
            options.seed,
            options.minutes,
            options.cases,
            options.question,
            5,
            TOGETHER * k,
            options.workers,
        )
        for k in range(options.workers)
    ]
    if options.workers == 1:
        answers = [_search(parts[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
            answers = pool.map(_search, parts, chunksize=1)
    broken = {}
    for _, found, _ in answers:
        for key, items in found.items():
            broken.setdefault(key, []).extend(items)
    return (
        sum((a for a, _, _ in answers), Counter()),
        broken,
        sum((u for *_, u in answers), Counter()),
    )


def main():
    """Run the search as a command: exit code 1 where a claim was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--question", choices=claims.QUESTIONS, help="ask only this")
    parser.add_argument("--keep", action="store_true", help="add what is broken to the corpus")
    options = parser.parse_args()
    old = [claims.answer(case) for case in corpus()]
    start = time.monotonic()
    asked, broken, undecided = searched(options)
    seconds = time.monotonic() - start
    for (question, kind), items in sorted(broken.items()):
        smallest = shrink.shrunk(items[0][1], claims.answer)
        print(f"\n{question}, {kind}: {len(items)} cases, first {items[0][0]}; smallest:")
        print(smallest)
        print(json.dumps(smallest.case))
        if options.keep:
            with CORPUS.open("a") as stream:
                stream.write(json.dumps(smallest.case) + "\n")
    count = sum(map(len, broken.values())) + sum(v is not None for v in old)
    print(
        f"{sum(asked.values())} cases and {len(old)} of the corpus in {seconds:.0f} s: "
        f"{count} violations, {undecided.total()} not decided {dict(undecided)}"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
