"""Compare accountants: ``python benchmarks/court.py [--cases N] [--seed S] [--json FILE]``.

``python -m benchmarks.court`` does the same if no installed package has the name ``benchmarks``, as
that of Opacus has.

Draws compositions of mechanisms from a seed and asks every accountant that is installed for epsilon
at a delta. Two neighbouring databases exceed an answer below our proved lower bound. Our bracket is
checked as well: if all outcomes can be listed, or a closed form is known, delta at both bounds is
computed with 60 digits by tests/oracles.
``--write FILE`` writes the verdicts as a page of the documentation, ``--answers FILE`` the numbers
that ``tools/pictures.py`` draws; ``--alone`` draws only cases that can be computed so, and asks
nobody else.
"""

import argparse
import json
import logging
import math
import random
import sys
import time
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]  # where pytest finds them as well

import fastpriv as fp  # noqa: E402
from accountants import FASTPRIV, PEERS, NotTaken, namespace  # noqa: E402
from contenders import guarded, words  # noqa: E402
from events import FAMILIES, Allocation, Gaussian, Response, Sampled, draw, leaves  # noqa: E402
from oracles.enumeration import exact_curve  # noqa: E402
from verdicts import page, report  # noqa: E402

#: A shortfall below this is that of parameters which had to be rounded for the accountant.
ROUNDING = 1e-9
#: Seconds that an accountant is given for one answer.
LIMIT = 10.0
#: First questions, which are not counted.
WARM_UP = (Sampled(Gaussian(1.0), 0.1), Response(2, 1.0), Allocation(1.5, 10, 1))


@dataclass
class Answer:
    """What one accountant said in one case."""

    accountant: str
    line: str = ""
    epsilon: float | None = None
    seconds: float | None = None
    reason: str = ""


@dataclass
class Case:
    """A composition, our bracket, the verdict of the enumeration, and what others said."""

    number: int
    family: str
    tree: str
    delta: float
    line: str
    lower: float = 0.0
    upper: float = math.inf
    seconds: float | None = None
    checked: bool = False
    holds: bool = True
    refusal: str = ""
    answers: list = field(default_factory=list)

    def shortfall(self, answer):
        """How far an answer is below our lower bound, relative to it; 0 where it is not."""
        if answer.epsilon is None or answer.epsilon >= self.lower:
            return 0.0
        missing = (self.lower - answer.epsilon) / self.lower
        return missing if missing > ROUNDING else 0.0

    def excess(self, answer):
        """How far a finite answer is above our upper end, relative to it."""
        return max(answer.epsilon / self.upper - 1.0, 0.0) if self.upper > 0.0 else 0.0


def plain(leaf):
    """A leaf as the oracles name it, or None."""
    if isinstance(leaf, Sampled):
        inner = plain(leaf.leaf)
        return inner and (f"sampled {inner[0]}", *inner[1:], leaf.rate)
    name = "".join(f" {c.lower()}" if c.isupper() else c for c in type(leaf).__name__).strip()
    return (name, *vars(leaf).values())


def exactly(tree):
    """delta of a tree as a function of epsilon, or None where it cannot be computed."""
    return exact_curve(Counter({plain(leaf): count for leaf, count in leaves(tree).items()}))


def holds(curve, delta, bracket):
    """Whether the exact curve crosses delta inside our bracket."""
    high, low = curve(bracket.upper), curve(bracket.lower)
    return bool(high <= delta and (bracket.lower == 0.0 or low >= delta))


def ask(accountant, tree, delta, limit):
    """The answer of an accountant, or why there is none."""
    answer = Answer(accountant.name)
    try:
        answer.line = accountant.line(tree, delta)
        with guarded(limit):
            call = accountant.call(tree, delta)
            start = time.perf_counter()
            epsilon = float(call())
            answer.seconds = time.perf_counter() - start
    except NotTaken as error:
        answer.reason = f"not taken: {error}"
    except Exception as error:
        refused = "Unsupported" in type(error).__name__
        answer.reason = f"{'not taken' if refused else 'failed'}: {words(error)}"
    else:
        if math.isnan(epsilon):
            answer.reason = "failed: not a number"
        else:
            answer.epsilon = epsilon
    return answer


def tried(number, seed, families, peers, limit):
    """One case, heard in full; without peers None where nothing is known to check ours by."""
    # Each case has a seed of its own, so that one can be heard again alone.
    family, tree, delta = draw(random.Random(f"{seed}/{number}"), families)
    curve = exactly(tree)
    if not peers and curve is None:
        return None
    case = Case(number, family, repr(tree), delta, FASTPRIV.line(tree, delta))
    start = time.perf_counter()
    try:
        bracket = FASTPRIV.call(tree, delta)()
    except fp.FastprivError as error:
        case.refusal = words(error)
        return case
    case.seconds = time.perf_counter() - start
    case.lower, case.upper = bracket.lower, bracket.upper
    if curve is not None:
        case.checked, case.holds = True, holds(curve, delta, bracket)
    case.answers = [ask(peer, tree, delta, limit) for peer in peers]
    return case


def installed(peers):
    """Those that can be asked, the versions of all (None: not installed), and failed imports.

    Modules are imported here, and each is asked once, not within the time for an answer: an import
    or a compilation that is stopped halfway would spoil all later ones.
    """
    versions, unusable, usable = {}, {}, []
    for peer in (FASTPRIV, *peers):
        try:
            versions[peer.needs] = metadata.version(peer.needs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                namespace(peer.imports)
                warm_up(peer)
        except metadata.PackageNotFoundError:
            versions[peer.needs] = None
        except Exception as error:
            unusable[peer.name] = words(error)
        else:
            usable += [] if peer is FASTPRIV else [peer]
    return usable, versions, unusable


def warm_up(accountant):
    """Ask a few questions; what an accountant does not take is of no interest here."""
    for tree in WARM_UP:
        with suppress(Exception):
            accountant.call(tree, 1e-5)()


def answers(cases, run):
    """Every answer as plain numbers, for the picture of the documentation."""
    found = []
    for case in cases:
        given = {} if case.refusal else {"fastpriv": case.upper}
        given |= {a.accountant: a.epsilon for a in case.answers if a.epsilon is not None}
        plain = {name: "infinite" if math.isinf(e) else e for name, e in given.items()}
        found.append({"number": case.number, "lower": case.lower, "answers": plain})
    return run | {"cases": found}


def main(arguments=None):
    """Hear the cases and print the verdicts; 1 if ours is wrong or refuses."""
    parser = argparse.ArgumentParser(prog="python benchmarks/court.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cases", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one answer")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="draw only from these")
    parser.add_argument(
        "--alone", action="store_true", help="check ours where delta is known, ask nobody else"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every answer")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the verdicts as a page")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="write what pictures show")
    given = parser.parse_args(arguments)
    logging.disable()  # what accountants warn of is not what they answer
    peers, versions, unusable = installed(() if given.alone else PEERS)
    families = tuple(given.family or FAMILIES)
    cases, number, end = [], 0, time.monotonic() + given.seconds
    while len(cases) < given.cases and time.monotonic() < end:
        case = tried(number, given.seed, families, peers, given.limit)
        cases += [] if case is None else [case]
        number += 1
    run = {"seed": given.seed, "families": families, "limit": given.limit, "versions": versions}
    run["not importable"] = unusable
    if given.json is not None:
        content = run | {"cases": [asdict(case) for case in cases]}
        text = json.dumps(content, indent=1).replace(": Infinity", ': "infinite"')
        given.json.write_text(text + "\n")
    if given.answers is not None:
        given.answers.write_text(json.dumps(answers(cases, run)).replace("}}, ", "}},\n") + "\n")
    if given.write is not None:
        given.write.write_text(page(cases, run))
    print(report(cases, run))
    return 0 if all(case.holds and not case.refusal for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
