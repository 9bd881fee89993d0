"""Bad command lines for every command: ``python -m tests.fuzz.commands --minutes 10``.

Words come from the parser itself: options of a command with values that are good, wrong or hostile.
What may happen: exit code 0, or a documented one with one line on stderr that begins with
``fastpriv:``, and no file made or changed. Anything else is a violation: code 1 (a defect), a
traceback, a warning, more than one line, a file that was left.
"""

import argparse
import collections
import contextlib
import io
import math
import os
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from command_line import FILES, contents
from fastpriv.cli.main import main as fastpriv
from fastpriv.cli.main import make_parser

#: Codes of a refusal, which ``fastpriv --help`` explains.
REFUSED = {2, 3, 4, 5, 6}

#: Good calls, so that most words of a command line are right.
GOOD = (
    "audit bit.csv", "audit channel.csv --prior prior.csv", "audit randomised-response:epsilon=1",
    "compare bit.csv bit.csv", "capacity bit.csv", "capacity channel.csv --json",
    "solve dp --prior iid:p=0.7,0.3,n=2 --epsilon 1",
    "solve identifiability --prior prior.csv --epsilon 3",
    "solve dp --prior prior.csv --epsilon 1 --out best.csv", "tradeoff --prior prior.csv",
    "tradeoff --prior iid:p=0.6,0.4,n=2 --out curve.csv",
    "release people.csv --domain domain.json --epsilon 1 --out released.csv --report report.json",
    "estimate people.csv --domain domain.json --epsilon 1",
    "ledger create budget.db --budget dp=1", "ledger show budget.db", "completion bash",
)  # fmt: skip

HOSTILE = (
    "", " ", "-", "--", "-1", "0", "1e400", "nan", "inf", "-inf", "1e-320", "0x10", "1_000", "½",
    "none", "None", "true", "=", "a=b", "p=", "p=0.5", "p=0.5,0.6", "n=-1", "n=1e9", ":", "::",
    "iid:", "iid:p=0.5,0.5", "iid:p=0.5,0.5,n=0", "iid:p=0.5,0.5,n=60", "iid:p=nan,1,n=2",
    "uniform:n=2", "markov:", "randomised-response:", "randomised-response:epsilon=-1",
    "randomised-response:epsilon=1,n=0", "gaussian:sigma=0", "missing.csv", "/nowhere/x.csv",
    "folder.csv", "latin.csv", *FILES, "a" * 300, "\x00", "\n", "\x1b[31m", "a\nb", "../x.csv",
    "--json", "--out", "--nonsense", "--epsilon", "--prior=", "--epsilon=", "--epsilon=1=2",
    "dp", "dp=-1", "dp=nan", "dp=1,dp=2", "pml", "mutual-information", "99999999999999999999",
)  # fmt: skip


def words_of(parser):
    """Return the option strings of every command."""
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    commands = actions[0].choices if actions else {}
    return {
        name: [word for action in sub._actions for word in action.option_strings]
        for name, sub in commands.items()
    }


OPTIONS = words_of(make_parser())
#: It compiles for a minute, and has no arguments to be wrong.
SLOW = {"warm-up", "warm_up"}


def draw(seed, number):
    """Return a command line: a good one with some words replaced, dropped, doubled or added."""
    rng = np.random.default_rng([seed, number])
    words = GOOD[rng.integers(len(GOOD))].split()
    if rng.integers(6) == 0:  # any command with any options
        names = [name for name in OPTIONS if name not in SLOW]
        name = names[rng.integers(len(names))]
        words = [name, *(str(HOSTILE[rng.integers(len(HOSTILE))]) for _ in range(rng.integers(4)))]
    for _ in range(rng.integers(1, 4)):
        place, kind = int(rng.integers(1, len(words) + 1)), rng.integers(4)
        hostile = str(HOSTILE[rng.integers(len(HOSTILE))])
        options = OPTIONS.get(words[0], ["--json"])
        if kind == 0 and place < len(words):
            words[place] = hostile
        elif kind == 1 and place < len(words):
            del words[place]
        elif kind == 2:
            words.insert(place, str(options[rng.integers(len(options))]))
        else:
            words[place:place] = [str(options[rng.integers(len(options))]), hostile]
    return words


def outcome(words, folder):
    """Return None, or what is wrong with what a command line does; the folder is left as it was."""
    before = contents(folder)
    out, err = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out):
            warnings.simplefilter("error")
            with contextlib.redirect_stderr(err):
                code = fastpriv(words)
    except SystemExit as asked:  # --help and --version
        code = asked.code or 0
    except BaseException as error:
        return f"raised {type(error).__name__}: {str(error)[:100]}"
    problem = _wrong(code, err.getvalue())
    if code != 0 and problem is None and contents(folder) != before:
        problem = "a refused command changed a file"
    _restore(folder, before)
    return problem


def _wrong(code, said):
    if "Traceback" in said or code not in {0, *REFUSED}:
        return f"exit code {code}: {said[:160]!r}"
    if code in REFUSED:
        line = said.strip("\n")
        if "\n" in line or not line.startswith(("fastpriv: ", "{")):
            return f"not one line: {said[:160]!r}"
    return None


def _restore(folder, before):
    for path in sorted(folder.rglob("*"), reverse=True):
        if path not in before:
            path.rmdir() if path.is_dir() else path.unlink()
    for path, text in before.items():
        if text is not False and (not path.exists() or path.read_bytes() != text):
            path.write_bytes(text)


@contextlib.contextmanager
def prepared():
    """Go to a new folder with files to work on."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        (folder / "latin.csv").write_bytes("0.5,é\n".encode("latin-1"))
        (folder / "folder.csv").mkdir()
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)


def search(seed, minutes, cases):
    """Run commands until time or number runs out; return how many, and what went wrong by kind."""
    start, number, wrong = time.monotonic(), 0, collections.defaultdict(list)
    with prepared() as folder:
        while number < cases and time.monotonic() - start < 60.0 * minutes:
            words = draw(seed, number)
            problem = outcome(words, folder)
            if problem:
                wrong[words[0], re.sub(r"\d+", "#", problem)[:70]].append((number, problem, words))
            number += 1
    return number, wrong, time.monotonic() - start


def main():
    """Run the search as a command: exit code 1 where something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.commands", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, wrong, seconds = search(options.seed, options.minutes, options.cases)
    for (name, _), items in sorted(wrong.items()):
        case, problem, words = items[0]
        print(f"{name}, case {case}, {len(items)} like it: {words}\n    {problem}")
    print(f"{number} command lines in {seconds:.0f} s: {sum(map(len, wrong.values()))} went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
