"""Cases from a seed, and the search through them in one process or in several."""

import json
import math
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np

from fuzz import claims, numbers, specs
from fuzz.runs import in_processes, numbers_of

CORPUS = Path(__file__).parent / "corpus.jsonl"
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


def search(seed, minutes, cases, only=None, keep=5, worker=0, workers=1):
    """Ask cases until time or number runs out; return how many of each, and what was broken."""
    start, asked, broken = time.monotonic(), Counter(), {}
    for number in numbers_of(worker, workers, TOGETHER):
        if number >= cases or time.monotonic() - start >= 60.0 * minutes:
            break
        spec = case_of(seed, number, only)
        asked[spec["question"]] += 1
        violation = claims.answer(spec, check=number % CHECKED == CHECKED - 1)
        if violation is not None:
            same = broken.setdefault((spec["question"], violation.kind), [])
            same.append((number, violation))
            if len(same) <= keep:
                print(f"case {number}: {violation}", flush=True)
    return asked, broken, Counter(spec["question"] for spec in claims.UNDECIDED)


def searched(seed, minutes, cases, only=None, workers=1):
    """Search in one process or in several, which take bundles of cases in turn."""
    parts = [(seed, minutes, cases, only, 5, k, workers) for k in range(workers)]
    return in_processes(search, parts)
