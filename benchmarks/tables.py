"""Write the tables of a run into README.md and docs/benchmarks.md.

``pytest benchmarks/ --benchmark-only --benchmark-json FILE`` makes a run, and
``python benchmarks/tables.py FILE`` writes it: five rows between the markers in README.md,
and the whole page of the documentation. ``--readme`` writes the five rows only, from a run of their
topics; ``--root DIR`` writes into another folder; ``--topic NAME --page FILE`` writes a page of one
topic only.
"""

import argparse
import ast
import json
import math
import sys
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from records import INFINITE, Record, records_of

FOLDER = Path(__file__).parent
START, END = "<!-- benchmarks:start -->", "<!-- benchmarks:end -->"
#: Times within this factor count as even.
EVEN = 1.1
#: How a better answer of a peer is named.
BETTER = {"time": "faster", "accuracy": "more accurate"}
#: Growth beyond what is promised that is blamed on caches and noise.
SLACK = 2.0


def duration(seconds):
    """Seconds in a unit that suits them, three digits."""
    if seconds is None:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{shown(seconds / size)} {unit}"
    return f"{shown(seconds * 1e9)} ns"


def shown(number):
    """A number to three digits, without powers of ten while it is moderate."""
    if number is None:
        return ""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    size = math.floor(math.log10(abs(number)))
    return f"{number:,.{max(0, 2 - size)}f}" if -3 <= size < 9 else f"{number:.2g}"


def rounded_down(number):
    """A positive number in ten digits, none of them too large."""
    size = 9 - math.floor(math.log10(number))
    return f"{math.floor(number * 10.0**size) / 10.0**size:.10g}"


def questions(records):
    """Yield our record of every question and instance (None where missing) and the others."""
    for _, group in groupby(records, lambda r: (r.topic, r.question, r.instance)):
        asked = list(group)
        mine = next((r for r in asked if r.kind == "ours"), None)
        yield mine, [r for r in asked if r is not mine]


def worse(one, other):
    """Whether the error of one record is beyond the target and ten times that of another."""
    if one.error is None or other.error is None:
        return False
    return one.error > max(one.target or 0.0, 10.0 * other.error, 1e-15)


def losses(mine, other=None):
    """What a peer, or the promise in our docstring, is better on."""
    if mine.status != "ok":
        return [mine.status]
    if other is None:
        slow = mine.growth is not None and mine.growth > SLACK * mine.promised
        return ["promised cost"] if slow else []
    if other.kind != "peer" or other.status != "ok":
        return []
    lost = ["time"] if EVEN * other.seconds < mine.seconds else []
    return lost + (["accuracy"] if worse(mine, other) else [])


def remark(mine, other):
    """What a peer's answer is worth beside ours."""
    if other.sound is False and mine.sound is not False:
        return "unsound"
    if other.note == INFINITE:
        return "infinite"
    return "less accurate" if worse(other, mine) else ""


def verdict(mine, other=None):
    """One comparison in words."""
    lost = losses(mine, other)
    if other is None or mine.status != "ok":
        return f"ours: {lost[0]}" if lost else ""
    words = f"**{' and '.join(BETTER[word] for word in lost)}**" if lost else ""
    if other.status != "ok":
        return other.status
    if other.kind == "ours":
        return "ours as well"
    if other.kind == "yardstick":
        return f"yardstick: ours takes {shown(mine.seconds / other.seconds)} times as long"
    words = words or ("ours" if other.seconds > EVEN * mine.seconds else "even")
    note = remark(mine, other)
    return f"{words}; its answer is {note}" if note else words


def ratio(mine, other):
    """Its time over ours."""
    timed = other.seconds is not None and mine.seconds is not None
    return shown(other.seconds / mine.seconds) if timed else ""


def timing(record):
    """A time with its unit."""
    taken = duration(record.seconds)
    return f"{taken} per {record.unit}" if taken and record.unit != "call" else taken


def error(record):
    """An error, or what stands for it."""
    if record.growth is not None:
        return f"growth {record.growth:.1f}, promised {record.promised:.1f}"
    return "" if record.error is None else f"{record.error:.0e}"


def place(record):
    """An instance with its seed."""
    return record.instance + ("" if record.seed is None else f" (seed {record.seed})")


def table(header, rows):
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(str(c).replace('|', '/') for c in row)} |\n" for row in lines)


def full_table(records):
    """Every measurement of one benchmark."""
    rows = []
    for mine, others in questions(records):
        if mine is None:
            continue
        start = [mine.question, place(mine), timing(mine)]
        for other in others or [None]:
            if other is None:
                rows.append([*start, "", "", "", error(mine), "", verdict(mine)])
            else:
                told = [other.solver, timing(other), ratio(mine, other), error(mine), error(other)]
                rows.append([*start, *told, verdict(mine, other)])
    header = ["question", "instance", "ours", "peer", "its time", "its time / ours"]
    return table([*header, "our error", "its error", "verdict"], rows)


def short_table(records):
    """One line per question that people care about, with the peers that answered."""
    rows = []
    for mine, others in questions(r for r in records if r.headline):
        if mine is None:
            continue
        answers = []
        for other in others:
            if other.status != "ok":
                continue
            note = remark(mine, other)
            note = f"{note}, {other.error:.0e}" if note and other.error is not None else note
            note = "yardstick" if other.kind == "yardstick" else note
            answers.append(f"{other.solver} {ratio(mine, other)}{f' ({note})' if note else ''}")
        instance = f"`{mine.instance}`" if "(" in mine.instance else mine.instance
        rows.append([mine.question, instance, timing(mine), "; ".join(answers)])
    header = ["question", "instance", "fastpriv", "time of others / time of fastpriv"]
    return table(header, rows)


def unsound_table(records):
    """Answers on the wrong side of the truth that come with a line of Python to see them again."""
    rows = []
    for mine, others in questions(records):
        for other in others:
            if mine is not None and other.sound is False and other.line is not None:
                proved = "" if mine.lower is None else rounded_down(mine.lower)
                rows.append([other.solver, f"`{other.line}`", f"{other.value:.10g}", proved])
    header = ["peer", "question", "its answer", "at least this is reached"]
    return table(header, rows) if rows else "None in this run.\n"


def bullets(lines):
    """A Markdown list."""
    return "".join(f"- {line}\n" for line in lines)


def lost_cases(records):
    """Where others are better: (whether our answer is better, time ratio, in words)."""
    cases = []
    for mine, others in questions(records):
        if mine is None:
            continue
        name = f"{mine.question}, {mine.instance}"
        if losses(mine):
            text = f"{name}: {losses(mine)[0]} ({error(mine) or 'no answer'})"
            cases.append((False, 0.0, text))
            continue
        for other in others:
            if lost := losses(mine, other):
                times = f"{duration(other.seconds)}, ours {duration(mine.seconds)}"
                note = remark(mine, other)
                note = f"; its answer is {note}" if note else ""
                if "accuracy" in lost:
                    note += f"; its error is {other.error:.0e}, ours {mine.error:.0e}"
                better = " and ".join(BETTER[word] for word in lost)
                text = f"{name}: {other.solver} is {better} ({times}{note})"
                cases.append((remark(mine, other) != "", other.seconds / mine.seconds, text))
    return sorted(cases)


def lost_list(records):
    """Where others are better: first answers as good as ours, worst first, then the others."""
    return bullets(text for *_, text in lost_cases(records)) or "Nowhere in this run.\n"


def faster_sentence(records):
    """Name the tools that are faster with an answer as good, and on how many questions."""
    tools = {}
    for mine, others in questions(records):
        if mine is None:
            continue
        for r in others:
            if "time" in losses(mine, r) and not remark(mine, r):
                tools.setdefault(r.solver, set()).add(mine.question)
    if not tools:
        return "In this run no other tool is faster with an answer as good.\n"
    count = len(set().union(*tools.values()))
    ranked = sorted(tools, key=lambda name: -len(tools[name]))
    names = ", ".join(f"{name} ({len(tools[name])})" for name in ranked)
    return (
        f"Others are faster, with an answer as good, on {count} "
        f"question{'s' * (count > 1)}: {names}.\n"
    )


def revision(results):
    """Git's name of what was measured, and how much of it."""
    commit, selected = results["commit_info"], results.get("selected")
    name = (commit.get("id") or "unknown")[:7]
    dirty = ", with changes that were not committed" if commit.get("dirty") else ""
    chosen = f', benchmarks -m "{selected}"' if selected else ""
    return f"{name}{dirty}{chosen}"


def conditions(results):
    """Machine and versions, as a list."""
    versions = results["versions"]
    lines = [f"{name.replace('_', ' ')}: {v}" for name, v in results["conditions"].items()]
    installed = [f"{name} {v}" for name, v in versions.items() if v is not None]
    missing = [name for name, v in versions.items() if v is None]
    lines.append(f"date: {results['datetime'][:10]}")
    lines.append(f"revision: {revision(results)}")
    lines.append(f"versions: {', '.join(installed)}")
    lines.append(f"not installed: {', '.join(missing) or 'none of the peers'}")
    return bullets(lines)


READING = """\
fastpriv and every peer are timed in turns in one process. Times are the minimum over the rounds, in
the unit given. *Its time / ours* above 1 means that fastpriv is faster. The error of an answer is
its distance from the truth, or a bound on it; the results name it in `error_of`. Errors below the
one asked for count as equal. An *unsound* answer lies on the wrong side of the truth and is not a
guarantee. A yardstick, such as a copy of the same memory, answers no question and only puts the
time in proportion. Times within 10 % are even. A sweep over sizes is slower than promised if its
time grows more than twice as much as its docstring promises.
"""

README_READING = """\
A ratio above 1 means that fastpriv is faster. An *unsound* answer is on the wrong side of the
truth; the number is its error. A *yardstick* does only part of the work, such as a copy.
"""

RERUNNING = """\
```sh
pip install -e '.[bench,peers]'
pytest benchmarks/ --benchmark-only --benchmark-json results.json    # everything
pytest benchmarks/bench_capacity.py --benchmark-only -m "not large"  # one topic, small sizes
python benchmarks/tables.py results.json        # write this page and the table in the README
python benchmarks/instances.py --out instances  # the instances as .npy, with checksums
```

Results are not kept in the repository. Peers that are not installed are named. A call of a peer is
stopped after a minute, or when it asks for 2 GB more than is in use; a peer that takes longer than
five seconds is timed once and not given the next size. Instances come from seeds and are the same
bits on every machine, so other software can be compared on them.
"""


def schema():
    """Documentation of the results as JSON."""
    told = [f for f in fields(Record) if "meaning" in f.metadata]
    return (
        "The file of `--benchmark-json` is pytest-benchmark's, with `conditions` (the machine), "
        "`versions` (null: not installed) and `selected` (null: everything) beside its "
        "`commit_info` and `benchmarks`. The group of an entry is `question | instance`, its "
        "`extra_info` has these fields:\n\n"
        + table(["field", "meaning"], [[f"`{f.name}`", f.metadata["meaning"]] for f in told])
    )


def topics():
    """Names of all files of benchmarks."""
    return {path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py")}


def about(topic):
    """What a file of benchmarks says about itself."""
    path = FOLDER / f"bench_{topic}.py"
    return (ast.get_docstring(ast.parse(path.read_text())) or "") if path.exists() else ""


def page(results, records):
    """The whole page of the documentation."""
    parts = [
        "# Benchmarks\n",
        "This page is written by `python benchmarks/tables.py`.\n",
        "## How to read it\n",
        READING,
        "## How to run it\n",
        RERUNNING,
        "## This run\n",
        conditions(results),
        "## Where others are faster or more accurate\n",
        lost_list(records),
    ]
    for topic, group in groupby(records, lambda r: r.topic):
        title = topic.replace("_", " ").capitalize()
        parts += [f"## {title}\n", about(topic) + "\n", full_table(group)]
    parts += ["## Results as JSON\n", schema()]
    return "\n".join(parts)


def topic_page(results, records, topic):
    """A page of one topic, for a run that need not have the others."""
    chosen = [record for record in records if record.topic == topic]
    command = f"`python benchmarks/tables.py FILE --topic {topic} --page PAGE`"
    parts = [
        f"# Benchmarks: {topic.replace('_', ' ')}\n",
        f"This page is written by {command}.\n",
        about(topic) + "\n",
        "## This run\n",
        conditions(results),
        "## Times and errors\n",
        READING,
        full_table(chosen),
        "## Unsound answers\n",
        unsound_table(chosen),
    ]
    return "\n".join(parts)


def summary(results, records):
    """What the README shows."""
    machine = results["conditions"]
    head = (
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_before']} before and "
        f"{machine['load_after']} after, Python {machine['python']}, measured at revision "
        f"{revision(results)}.\n"
    )
    return "\n".join([head, short_table(records), README_READING + faster_sentence(records)])


def between_markers(text, new):
    """Replace what stands between the markers."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"README.md has no {START} ... {END} to write between")
    return f"{before}{START}\n{new}{END}{after}"


def write_readme(results, root):
    """Put the short table into the README."""
    readme = root / "README.md"
    text = summary(results, records_of(results))
    readme.write_text(between_markers(readme.read_text(), text))


def write(results, root):
    """Put the tables into README and documentation."""
    records = records_of(results)
    write_readme(results, root)
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs" / "benchmarks.md").write_text(page(results, records))


def main():
    """Write the tables of a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, metavar="FILE", help="from --benchmark-json")
    parser.add_argument("--root", type=Path, default=FOLDER.parent, metavar="DIR")
    parser.add_argument("--topic", choices=sorted(topics()), help="write a page of this alone")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where that page goes")
    parser.add_argument("--readme", action="store_true", help="write the rows of the README alone")
    given = parser.parse_args()
    if (given.topic is None) != (given.page is None):
        parser.error("--topic and --page go together")
    try:
        results = json.loads(given.results.read_text())
        parts = [results[name] for name in ("benchmarks", "conditions", "versions", "commit_info")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{given.results} is not what --benchmark-json of benchmarks/ writes: {error}")
    if given.topic is not None:
        given.page.write_text(topic_page(results, records_of(results), given.topic))
        return 0
    if given.readme:
        write_readme(results, given.root)
        return 0
    lacking = topics() - {entry["extra_info"]["topic"] for entry in parts[0]}
    if lacking:
        parser.error(f"the run lacks {', '.join(sorted(lacking))}: run all of benchmarks/")
    write(results, given.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
