"""Levels that hold whatever the law of the database."""

from __future__ import annotations

from fastpriv._text.words import Value, top
from fastpriv.auditing.case import GAP, Case, D, M, Notion, P, W, amount, ratio, share
from fastpriv.errors import short
from fastpriv.measures.approximate_dp import hockey_stick_epsilon
from fastpriv.measures.capacity import capacity
from fastpriv.measures.contraction import contraction
from fastpriv.measures.disclosure import singles_out
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.leakage import extreme_level, maxima_level
from fastpriv.measures.realised import drawn_level
from fastpriv.measures.witnesses import ruling_out, step_witness
from fastpriv.results import Bracket, Witness

#: Deltas of (epsilon, delta)-differential privacy.
DELTAS = (1e-3, 1e-6, 1e-9)


def _step(case: Case) -> Witness:
    return step_witness(case.channel)


def _extreme(case: Case) -> Witness:
    return case.extreme


def _approximate(delta: float) -> Notion:
    return Notion(
        f"approximate-dp-{delta:.0e}".replace("e-0", "e-"),
        f"differential privacy at delta {delta:.0e}".replace("e-0", "e-"),
        "nats",
        f"{M}, Definition 7",
        lambda case: hockey_stick_epsilon(case.compare(), delta),
        ratio(
            f"For neighbours the chances of any event differ by a factor of at most {{}}, plus "
            f"{delta:g}.",
            f"Neighbours give more than {delta:g} to outputs that the other one rules out.",
        ),
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
    size = case.channel.output_space.size
    return f"{short(size)} output{'s' if size > 1 else ''}"


def _singles_out(value: Value, case: Case) -> str:
    if value:
        return "Yes: some output leaves a single database possible, and so tells everything."
    if case.channel.space.size == 1:
        return "No: there is a single database, so no output tells anything."
    return "No: whatever comes out, more than one database remains possible."


#: Levels that hold whatever the law of the database.
ALWAYS = (
    Notion(
        "dp",
        "differential privacy",
        "nats",
        f"{W}, Definition 3",
        lambda case: neighbour_level(case.channel),
        ratio(
            "Changing one row changes the chance of any output by a factor of at most {}.",
            "Some output is possible for one database and impossible for a neighbour: seeing it "
            "settles something about one row.",
        ),
        _step,
    ),
    *map(_approximate, DELTAS),
    Notion(
        "realised-dp",
        "differential privacy of draws",
        "nats",
        "integer thresholds of the sampler",
        lambda case: drawn_level(case.channel),
        ratio(
            "What sample() really draws, in integers, keeps neighbours within a factor of {}.",
            "What sample() really draws can rule out a neighbour.",
        ),
    ),
    Notion(
        "strong-dp",
        "strong differential privacy, leakage capacity",
        "nats",
        f"{M}, Definition 7; {P}, Definition 2.7",
        lambda case: extreme_level(case.channel),
        ratio(
            "Any two databases, however different, have every output with chances within a factor "
            "of {}.",
            "Some output is possible for one database and impossible for another.",
        ),
        _extreme,
    ),
    Notion(
        "max-individual-capacity",
        "max-information about one row",
        "nats",
        f"{D}, Definition 8",
        lambda case: extreme_level(case.channel),
        ratio(
            "Whoever sees an output, with any beliefs beforehand, finds a value of one row at most "
            "{} times as likely as before.",
            "To somebody an output can reveal a value of one row that had seemed unlikely without "
            "limit.",
        ),
        _extreme,
    ),
    Notion(
        "maximal-leakage",
        "maximal leakage",
        "nats",
        "Issa et al. 2019, Theorem 1",
        lambda case: maxima_level(case.channel),
        ratio(
            "Seeing an output multiplies the chance of guessing any secret in the database by at "
            "most {} on average.",
            "Seeing an output helps to guess secrets without limit.",
        ),
    ),
    Notion(
        "channel-capacity",
        "channel capacity",
        "nats",
        f"Shannon 1948; {D}, Section 3",
        lambda case: capacity(case.search(), GAP),
        amount("An output tells at most {} about the database on average, whatever its law."),
    ),
    Notion(
        "individual-capacity",
        "individual capacity",
        "nats",
        f"{D}, Definition 5",
        lambda case: Bracket(case.individual.lower, case.individual.upper),
        amount(
            "About any one row an output tells at most {} on average, even to somebody who knows "
            "how the rows hang together."
        ),
        lambda case: case.individual.adversary,
    ),
    Notion(
        "contraction",
        "contraction coefficient",
        "share",
        f"{M}, Theorem 1 and (7)",
        lambda case: contraction(case.search()),
        share(
            "Of whatever the database tells about any other secret, at most {} reaches the output."
        ),
    ),
    Notion(
        "ruling-out",
        "outputs that rule databases out",
        "outputs",
        f"{P}, Definition 3.3",
        lambda case: ruling_out(case.channel)[0],
        _ruling_out,
        _extreme,
    ),
    Notion(
        "singles-out",
        "singling out",
        "",
        f"{P}, Definition 3.9",
        lambda case: singles_out(case.channel),
        _singles_out,
    ),
)
