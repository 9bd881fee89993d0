"""Draw cases from a seed until the time is over; print violations, smallest form, and a summary."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # the references are modules of the tests

from fuzz import claims, runs, shrink
from fuzz.search import CORPUS, corpus, searched


def main():
    """Run the search as a command: exit code 1 where a claim was broken."""
    parser = runs.parser("python -m tests.fuzz", __doc__)
    parser.add_argument("--question", choices=claims.QUESTIONS, help="ask only this")
    parser.add_argument("--keep", action="store_true", help="add what is broken to the corpus")
    options = parser.parse_args()
    old = [claims.answer(case) for case in corpus()]
    start = time.monotonic()
    asked, broken, undecided = searched(
        options.seed, options.minutes, options.cases, options.question, options.workers
    )
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
