"""Tables of benchmark results, in Markdown."""

from dataclasses import fields
from itertools import groupby

from _bench import Record, duration, shown

#: Times within this factor count as even.
EVEN = 1.1
#: Growth beyond what is promised that is blamed on caches and noise.
SLACK = 2.0


def questions(records):
    """Yield our record of every question and instance (None where missing) and the others."""
    for _, group in groupby(records, lambda r: (r.benchmark, r.question, r.instance)):
        found = list(group)
        mine = next((r for r in found if r.kind == "ours"), None)
        yield mine, [r for r in found if r is not mine]


def worse(one, other):
    """Whether the error of one record is beyond the target and ten times that of another."""
    if one.error is None or other.error is None:
        return False
    return one.error > max(one.target or 0.0, 10.0 * other.error, 1e-15)


def losses(mine, other=None):
    """What we lose on, to a peer or to our own promise."""
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
    return "less accurate" if worse(other, mine) else ""


def verdict(mine, other=None):
    """One comparison in words."""
    lost = losses(mine, other)
    words = f"**WE LOSE** on {' and '.join(lost)}" if lost else ""
    if other is None or mine.status != "ok":
        return words
    if other.status != "ok":
        return other.status
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
    """One line per question that people care about, with all peers in it."""
    rows = []
    for mine, others in questions(r for r in records if r.headline):
        if mine is None:
            continue
        told = []
        for other in others:
            if other.status != "ok":
                told.append(f"{other.solver}: {other.status}")
                continue
            note = remark(mine, other)
            note = (
                f" ({note}{'' if other.error is None else f', {other.error:.0e}'})" if note else ""
            )
            lost = " **WE LOSE**" if losses(mine, other) else ""
            told.append(f"{other.solver} {ratio(mine, other)}{note}{lost}")
        rows.append([mine.question, mine.instance, timing(mine), error(mine), "; ".join(told)])
    header = ["question", "instance", "ours", "our error", "others' time over ours"]
    return table(header, rows)


def bullets(lines):
    """A Markdown list."""
    return "".join(f"- {line}\n" for line in lines)


def lost_cases(records):
    """Where we lose: (whether the better answer is ours, its time over ours, in words)."""
    found = []
    for mine, others in questions(records):
        if mine is None:
            continue
        name = f"{mine.question}, {mine.instance}"
        if losses(mine):
            text = f"{name}: on {losses(mine)[0]} ({error(mine) or 'no answer'})"
            found.append((False, 0.0, text))
            continue
        for other in others:
            if lost := losses(mine, other):
                times = f"{duration(other.seconds)}, ours {duration(mine.seconds)}"
                note = remark(mine, other)
                note = f"; its answer is {note}" if note else ""
                if "accuracy" in lost:
                    note += f"; its error is {other.error:.0e}, ours {mine.error:.0e}"
                text = f"{name}: to {other.solver} on {' and '.join(lost)} ({times}{note})"
                found.append((remark(mine, other) != "", other.seconds / mine.seconds, text))
    return sorted(found)


def lost_list(records):
    """Where we lose: first to answers as good as ours, worst first, then to others."""
    return bullets(text for *_, text in lost_cases(records)) or "Nowhere in this run.\n"


def conditions(results):
    """Machine and versions, as a list."""
    machine, versions = results["machine"], results["versions"]
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in machine.items()]
    installed = [f"{name} {v}" for name, v in versions.items() if v is not None]
    missing = [name for name, v in versions.items() if v is None]
    lines.append(f"revision: {results['revision']}{', quick run' if results['quick'] else ''}")
    lines.append(f"versions: {', '.join(installed)}")
    lines.append(f"not installed: {', '.join(missing) or 'none of the peers'}")
    stopped = [f"{b['name']} ({b['status']})" for b in results["benchmarks"] if b["status"] != "ok"]
    lines.append(f"stopped or failed: {', '.join(stopped) or 'none'}")
    return bullets(lines)


READING = """\
Ours and every peer are timed in turns in one process, so that noise hits both; times are the
least of the rounds, in the unit given. *Its time / ours* above 1 means that ours is faster. An
error is how far an answer may be, or is, from the truth (what it measures stands in the results as
`error_of`); errors below the one asked for count as equal. *Unsound* is an answer on the wrong side
of the truth, which is no guarantee. A yardstick, such as a copy of the same memory, answers no
question and only puts our time in proportion. Times within 10 % are even. A sweep loses where its
time grows more than twice as much as its docstring promises.
"""

RERUNNING = """\
```sh
pip install -e '.[test,peers]'
python benchmarks/run.py --json results.json          # everything, about a quarter of an hour
python benchmarks/run.py --quick capacity accounting  # small sizes, some of them
python benchmarks/run.py --json results.json --write  # and put the tables here and in the README
python benchmarks/instances.py --out instances        # the instances as .npy, with checksums
```

The records of a run are what `--json` writes; they are not kept in the repository. Peers that are
not installed are named. Each benchmark runs in a process of its own, with a limit of 8 GB and of
some minutes; what it measured before it was stopped is kept. Instances come from seeds and are the
same bits on every machine, so other software can be compared on them.
"""


def schema():
    """Documentation of the results as JSON."""
    rows = [[f"`{f.name}`", f.metadata["meaning"]] for f in fields(Record)]
    return (
        "An object with `schema` (1), `machine`, `versions` (null: not installed), `revision`, "
        "`quick`, `started`, `seconds`, `benchmarks` (name, status and seconds of each) and "
        "`records`, one per measurement:\n\n" + table(["field", "meaning"], rows)
    )


def page(results, records):
    """The whole page of the documentation."""
    parts = [
        "# Benchmarks\n",
        "This page is written by `python benchmarks/run.py --write`.\n",
        "## How to read it\n",
        READING,
        "## How to run it\n",
        RERUNNING,
        "## This run\n",
        conditions(results),
        "## Where we lose\n",
        lost_list(records),
    ]
    for name, group in groupby(records, lambda r: r.benchmark):
        about = next(b["about"] for b in results["benchmarks"] if b["name"] == name)
        parts += [f"## {name.replace('_', ' ').capitalize()}\n", about + "\n", full_table(group)]
    parts += ["## Results as JSON\n", schema()]
    return "\n".join(parts)


def summary(results, records):
    """What the README shows."""
    machine = results["machine"]
    head = (
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_before']} before and "
        f"{machine['load_after']} after, Python {machine['python']}, revision "
        f"{results['revision']}{', quick run' if results['quick'] else ''}.\n"
    )
    cases = lost_cases(records)
    plain = [text for worse_answer, _, text in cases if not worse_answer]
    others = len(cases) - len(plain)
    lost = "Where we lose to an answer as good as ours, or to our own promise:\n"
    rest = f"Another {others} times a faster answer is unsound or less accurate.\n"
    return "\n".join([head, short_table(records), lost, bullets(plain) or "Nowhere.\n", rest])
