"""Draw cases from a seed until the time is over; print violations, smallest form, and a summary."""

import argparse
import json
import math
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the references are modules of the tests' folder

from fuzz import claims, numbers, shrink, specs  # noqa: E402

CORPUS = HERE / "corpus.jsonl"


def case_of(seed, number, only=None):
    """Return one case, the same for a seed and a number whatever came before."""
    rng = np.random.default_rng([seed, number])
    names = [only] if only else [n for n, q in claims.QUESTIONS.items() for _ in range(q.weight)]
    sizes = list(specs.SPACES[rng.integers(len(specs.SPACES))])
    channel = specs.random_channel(rng, sizes)
    name = str(names[rng.integers(len(names))])
    if math.prod(sizes) > claims.QUESTIONS[name].databases:
        sizes = [2]
        channel = specs.random_channel(rng, sizes)
    own = channel["kind"] in ("tilted", "posterior") and rng.integers(2)
    return {
        "question": name,
        "channel": channel,
        "prior": channel["law"] if own else specs.random_prior(rng, sizes),
        "epsilon": numbers.epsilon(rng),
        "count": int(rng.integers(1, 4)),
        "part": [numbers.epsilon(rng), numbers.delta(rng)],
        "delta": numbers.delta(rng),
    }


def corpus():
    """Return the cases that once broke a claim."""
    return [json.loads(line) for line in CORPUS.read_text().splitlines()]


def search(seed, minutes, cases, only=None, keep=5):
    """Ask cases until time or number runs out; return how many of each, and what was broken."""
    start, asked, broken = time.monotonic(), Counter(), {}
    number = 0
    while number < cases and time.monotonic() - start < 60.0 * minutes:
        case = case_of(seed, number, only)
        number += 1
        asked[case["question"]] += 1
        violation = claims.answer(case)
        if violation is not None:
            alike = broken.setdefault((case["question"], violation.kind), [])
            alike.append((number - 1, violation))
            if len(alike) <= keep:
                print(f"case {number - 1}: {violation}", flush=True)
    return asked, broken, time.monotonic() - start


def main():
    """Run the search as a command: exit code 1 where a claim was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--question", choices=claims.QUESTIONS, help="ask only this")
    parser.add_argument("--keep", action="store_true", help="add what is broken to the corpus")
    options = parser.parse_args()
    old = [claims.answer(case) for case in corpus()]
    asked, broken, seconds = search(options.seed, options.minutes, options.cases, options.question)
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
        f"{count} violations"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
