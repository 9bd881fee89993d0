"""Levels that hold whatever the law of the database."""

from __future__ import annotations

from fastpriv.auditing.case import GAP, Case, Line, amount, ratio, share
from fastpriv.errors import short
from fastpriv.measures.capacity import capacity
from fastpriv.measures.contraction import contraction
from fastpriv.measures.witnesses import ruling_out, step_witness
from fastpriv.notions.registry import NOTIONS
from fastpriv.results import Bracket, Value, Witness, top


def _step(case: Case) -> Witness:
    return step_witness(case.channel)


def _extreme(case: Case) -> Witness:
    return case.extreme


def _approximate(slug: str, delta: float) -> Line:
    return Line(
        ratio(
            f"For neighbours the chances of any event differ by a factor of at most {{}}, plus "
            f"{delta:g}.",
            f"Neighbours give more than {delta:g} to outputs that the other one rules out.",
        ),
        lambda case: NOTIONS[slug].level(case.compare()),
    )


def _ruling_out(value: Value, case: Case) -> str:
    count = int(top(value))
    if count == 0:
        return "No output rules any database out: 0 of " + _outputs(case) + "."
    rows = ruling_out(case.channel)[1]
    named = ", ".join(" ".join(map(str, row[:16].tolist())) for row in rows)
    more = ", ..." if count > len(rows) else ""
    return f"{short(count)} of {_outputs(case)} rule some database out for certain: {named}{more}."


def _outputs(case: Case) -> str:
    size = case.channel.output_count
    return f"{short(size)} output{'s' if size > 1 else ''}"


def _singles_out(value: Value, case: Case) -> str:
    if value:
        return "Yes: some output leaves a single database possible, and so tells everything."
    if case.channel.space.size == 1:
        return "No: there is a single database, so no output tells anything."
    return "No: whatever comes out, more than one database remains possible."


#: Levels that hold whatever the law of the database.
MECHANISM: dict[str, Line] = {
    **{
        slug: _approximate(slug, *notion.arguments)
        for slug, notion in NOTIONS.items()
        if notion.measure == "hockey_stick_epsilon"
    },
    "dp": Line(
        ratio(
            "Changing one row changes the chance of any output by a factor of at most {}.",
            "Some output is possible for one database and impossible for a neighbour: seeing it "
            "settles something about one row.",
        ),
        worst=_step,
    ),
    "realised-dp": Line(
        ratio(
            "What sample() really draws, in integers, keeps neighbours within a factor of {}.",
            "What sample() really draws can rule out a neighbour.",
        )
    ),
    "strong-dp": Line(
        ratio(
            "Any two databases, however different, have every output with chances within a factor "
            "of {}.",
            "Some output is possible for one database and impossible for another.",
        ),
        worst=_extreme,
    ),
    "max-individual-capacity": Line(
        ratio(
            "Whoever sees an output, with any beliefs beforehand, finds a value of one row at most "
            "{} times as likely as before.",
            "To somebody an output can reveal a value of one row that had seemed unlikely without "
            "limit.",
        ),
        worst=_extreme,
    ),
    "maximal-leakage": Line(
        ratio(
            "Seeing an output multiplies the chance of guessing any secret in the database by at "
            "most {} on average.",
            "Seeing an output helps to guess secrets without limit.",
        )
    ),
    "channel-capacity": Line(
        amount("An output tells at most {} about the database on average, whatever its law."),
        lambda case: capacity(case.search(), GAP),
    ),
    "individual-capacity": Line(
        amount(
            "About any one row an output tells at most {} on average, even to somebody who knows "
            "how the rows hang together."
        ),
        lambda case: Bracket(case.individual.lower, case.individual.upper),
        lambda case: case.individual.adversary,
    ),
    "contraction": Line(
        share(
            "Of whatever the database tells about any other secret, at most {} reaches the output."
        ),
        lambda case: contraction(case.search()),
    ),
    "ruling-out": Line(_ruling_out, lambda case: ruling_out(case.channel)[0], _extreme),
    "singles-out": Line(_singles_out),
}
