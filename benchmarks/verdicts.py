"""What the court prints: a line for every accountant, and every answer that is no guarantee."""

import math
import statistics
from collections import Counter

from accountants import FASTPRIV, PEERS
from tables import duration, rounded_down, shown, table

#: Answers below our lower bound that are shown for each accountant and family; JSON has all.
SHOWN = 4


def count(cases, name, begins):
    """How many answers of an accountant are missing for a reason that begins so."""
    return sum(a.reason.startswith(begins) for case in cases for a in of(case, name))


def of(case, name):
    """The answer of an accountant, as a list of one or none."""
    return [answer for answer in case.answers if answer.accountant == name]


def middle(values):
    """Median, or nothing."""
    return statistics.median(values) if values else None


def lines(cases, names):
    """Rows of the table of accountants."""
    for name in names:
        heard = [(case, a) for case in cases for a in of(case, name) if a.epsilon is not None]
        short = [case.shortfall(a) for case, a in heard if case.shortfall(a) > 0.0]
        finite = [(case, a) for case, a in heard if math.isfinite(a.epsilon)]
        above = [case.excess(a) for case, a in finite if a.epsilon >= case.lower]
        slower = [a.seconds / case.seconds for case, a in heard]
        yield [
            name,
            len(heard),
            count(cases, name, "not taken"),
            count(cases, name, "failed"),
            len(heard) - len(finite),
            len(short),
            f"{max(short):.2g}" if short else "",
            "" if not above else f"{middle(above):.1e}",
            shown(middle(slower)),
        ]


HEADER = [
    "accountant",
    "answers",
    "not taken",
    "failed",
    "infinite",
    "below",
    "largest shortfall",
    "median excess",
    "median time / ours",
]


def unsound(cases):
    """Answers below our lower bound, by accountant, worst first."""
    below = [(case, a) for case in cases for a in case.answers if case.shortfall(a) > 0.0]
    return sorted(below, key=lambda pair: (pair[1].accountant, -pair[0].shortfall(pair[1])))


def worst(cases):
    """The first few of them for each accountant and family."""
    seen = Counter()
    for case, answer in unsound(cases):
        seen[answer.accountant, case.family] += 1
        if seen[answer.accountant, case.family] <= SHOWN:
            yield case, answer


def ours(cases):
    """What is known of ours, in sentences."""
    listed = sum(case.checked for case in cases)
    wrong = [case for case in cases if not case.holds]
    refused = [case for case in cases if case.refusal]
    endless = sum(math.isinf(case.upper) for case in cases if not case.refusal)
    widths = [
        (case.upper - case.lower) / case.upper for case in cases if 0.0 < case.upper < math.inf
    ]
    heard = [case.seconds for case in cases if case.seconds is not None]
    told = [
        f"fastpriv answered {len(cases) - len(refused):,} of {len(cases):,}, in a median time of "
        f"{duration(middle(heard))} and at most {duration(max(heard, default=None))}; the median "
        f"bracket has a relative width of {middle(widths) or 0.0:.1e}, the widest finite one "
        f"{max(widths, default=0.0):.1e}. The upper bound is infinite in {endless} cases.",
        f"{listed:,} cases could be computed by listing outcomes or by a closed form; the bracket "
        f"of fastpriv holds in {listed - len(wrong):,} of them.",
    ]
    told += [f"the bracket of fastpriv does not hold: {case.line}" for case in wrong]
    return told + [f"fastpriv refused: {case.line}: {case.refusal}" for case in refused]


def names_of(run):
    """Who was asked, and who is not installed."""
    unusable = run.get("not importable", {})
    asked = [p for p in PEERS if run["versions"].get(p.needs) and p.name not in unusable]
    lacking = [peer.name for peer in PEERS if peer not in asked]
    return [peer.name for peer in asked], [
        f"{name} ({unusable[name]})" if name in unusable else name for name in lacking
    ]


def report(cases, run):
    """The verdicts as text."""
    names, lacking = names_of(run)
    rows = [HEADER, *lines(cases, names)]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(HEADER))]
    text = [
        "  ".join(
            str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    for case, answer in worst(cases):
        text += [
            "",
            f"{answer.accountant} answered {answer.epsilon:.10g}; {rounded_down(case.lower)} is "
            f"reached, a relative difference of {case.shortfall(answer):.2g}",
            f"  asked: {answer.line}",
            f"  reached: {case.line}",
        ]
    text += ["", *ours(cases)]
    if lacking:
        text.append(f"not installed or not asked: {', '.join(lacking)}")
    return "\n".join(text)


INTRODUCTION = """\
# Other accountants

![Answers relative to the proved lower bound](_static/pictures/accountants.svg)

Each dot is an answer to one of {cases} random compositions of queries, at a delta between 1e-3 and
1e-300. An answer below the proved lower bound is *unsound*: two neighbouring databases can be
distinguished better than the answer claims.

To compare the accountants that are installed on your machine, run this in a checkout; `--json FILE`
writes every question and every answer:

```text
pip install -e '.[test]' dp-accounting prv-accountant autodp opendp opacus riskcal PLD_accounting
python benchmarks/court.py --cases {cases} --seed {seed} --limit {limit:g} --json answers.json
```

This page is written with `--write docs/accountants.md --answers docs/_static/accountants.json`, the
figure by `python tools/pictures.py accountants.svg`.

- *Below* counts answers under the proved lower bound. The shortfall is relative to this bound.
  A shortfall below 1e-9 is not counted, because parameters are rounded for some accountants.
- *Excess* is the relative distance of sound answers from the upper bound of fastpriv.
- An accountant has {limit:g} seconds and 2 GB of memory for an answer; otherwise it has failed.
- An infinite answer is sound but of no use.
- The answer of prv-accountant is its upper bound, for an error of 0.01.
- The accountants of Opacus and riskcal take a history of (noise multiplier, sampling rate, steps);
  the GDP accountant takes one kind of step.
- Each accountant is asked a few questions before, so that imports and compilations do not count.
- Times are of a machine that did other work as well: they are no comparison of speed.

Times of each accountant are in the [benchmarks of accountants](benchmarks-accountants.md).
"""


def page(cases, run):
    """The verdicts as a page of the documentation."""
    names, lacking = names_of(run)
    told = INTRODUCTION.format(cases=len(cases), **run)
    versions = ", ".join(f"{name} {v}" for name, v in run["versions"].items() if v)
    parts = [told, table(HEADER, lines(cases, names)), *(f"- {line}" for line in ours(cases))]
    parts += [f"- versions: {versions}", f"- not installed: {', '.join(lacking) or 'none'}", ""]
    parts.append("## Answers below the lower bound\n")
    shown_now = list(worst(cases))
    parts.append(
        f"The largest shortfalls, at most {SHOWN} of a family, with the line of Python that gives "
        "each.\n"
    )
    for name in names:
        mine = [(case, a) for case, a in shown_now if a.accountant == name]
        if not mine:
            continue
        imports = next(peer.imports for peer in PEERS if peer.name == name)
        parts += [f"### {name}\n", f"```text\n{imports}\n```\n"]
        rows = [
            [
                f"`{a.line}`",
                f"{a.epsilon:.10g}",
                rounded_down(case.lower),
                f"{case.shortfall(a):.2g}",
            ]
            for case, a in mine
        ]
        parts.append(table(["question", "its answer", "lower bound", "shortfall"], rows))
    parts += [
        "## The brackets of fastpriv\n",
        f"```text\n{FASTPRIV.imports}\n```\n",
        "The lower bounds above come from these calls.\n",
        table(
            ["question", "bracket"],
            [
                [f"`{case.line}`", f"{case.lower:.10g} to {case.upper:.10g}"]
                for case in {case.number: case for case, _ in shown_now}.values()
            ],
        ),
    ]
    return "\n".join(parts)
