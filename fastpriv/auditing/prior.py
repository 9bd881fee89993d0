"""Levels that depend on the law of the database, and facts about that law."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered
from fastpriv._text.numbers import down, quantity, up
from fastpriv.auditing.case import (
    SEARCHED,
    Case,
    Line,
    amount,
    guaranteed,
    number,
    ratio,
    share,
    wrong,
)
from fastpriv.auditing.words import DIGITS, converted, factor, nats
from fastpriv.errors import InvalidInput
from fastpriv.measures.capacity import searched_entries
from fastpriv.measures.constrained import constrained_capacity
from fastpriv.measures.correlation import correlation
from fastpriv.measures.disclosure import discloses, disclosure_threshold
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.fano import error_probability_bound
from fastpriv.measures.information import information
from fastpriv.measures.leakage import worst_leakage_factor
from fastpriv.measures.sdpi import accurate_sdpi
from fastpriv.measures.witnesses import step_witness
from fastpriv.notions.registry import NOTIONS
from fastpriv.results import Bracket, Value, Witness, top

#: Values of all databases that are listed.
_LISTED = 1 << 20


def _posterior(case: Case) -> Witness:
    return step_witness(case.channel, case.prior)


def _leading(case: Case) -> Witness:
    return case.leading


def _distance(case: Case) -> float:
    if case.channel.output_space != case.channel.space:
        raise InvalidInput(
            "outputs are not databases; distortion(channel, prior, metric) takes a metric"
        )
    return expected_distance(case.channel, case.prior)


def _row_worst(value: Value, case: Case) -> str:
    row = int(np.argmax(case.row_levels))
    return (
        f"The most telling output multiplies the chance of guessing the value of row {row} by at "
        f"most {factor(top(value))}; no row leaks more."
    )


def _error_bound(case: Case) -> float:
    told = guaranteed(NOTIONS["leakage-factor"], case.factor)
    return error_probability_bound(top(told), case.prior)


def _disclosure(value: Value, case: Case) -> str:
    threshold, level = disclosure_threshold(case.prior), case.leakages[0]
    if value:
        rows = _given_away(case)
        many = "s" if len(rows) > 1 else ""
        named = f", and the value of row{many} {', '.join(map(str, rows))}" if rows else ""
        return (
            "Yes: some output rules out a database that can occur, and so gives away for certain "
            f"that it is not that one{named}; the leakage is up to "
            f"{_nats(up(level, DIGITS))}."
        )
    if threshold == math.inf:
        return "No: a single database can occur, so there is nothing to disclose."
    side, does = ("below", "proves") if level < threshold else ("not below", "would prove")
    return (
        "No: every output leaves every database that can occur possible, so no question about it "
        f"is settled for certain; the leakage of {_nats(up(level, DIGITS))} is {side} the "
        f"threshold of {_nats(down(threshold, DIGITS))}, which alone {does} it."
    )


def _given_away(case: Case) -> list[int]:
    """Rows whose value some output settles, where there are few enough databases to ask."""
    space = case.channel.space
    if space.size * space.n > _LISTED or searched_entries(case.channel) > SEARCHED:
        return []
    values = space.rows(np.arange(space.size)).T
    return [i for i in range(space.n) if discloses(case.channel, values[i], case.prior)]


def _disclosed(case: Case) -> Witness:
    """Return an output with a database it can come from and one it rules out, both possible."""
    extreme = case.extreme
    ends = (extreme.database, extreme.other)
    if all(x is not None and case.prior.log_prob(x) > -math.inf for x in ends):
        return extreme
    check.fits(searched_entries(case.channel), "the matrix to search", "ask discloses", SEARCHED)
    alive = np.flatnonzero(case.prior.probabilities())
    laws = case.channel.nearest_matrix()[alive]
    y = int(((laws.max(axis=0) > 0.0) & (laws.min(axis=0) == 0.0)).argmax())
    x, other = case.channel.space.rows(alive[[laws[:, y].argmax(), laws[:, y].argmin()]])
    return Witness(case.channel.output_row(y), x, other)


def _distortion(value: Value, case: Case) -> str:
    n, changed = case.channel.space.n, up(top(value), DIGITS)
    verb = "is" if n == 1 or changed == "1" else "are"
    return f"{changed} of {n:,} row{'s' if n > 1 else ''} {verb} expected to change."


def _nats(number: str) -> str:
    return quantity(number, "nats")


#: Levels that depend on the law of the database.
UNDER_PRIOR: dict[str, Line] = {
    "identifiability": Line(
        ratio(
            "Whoever knows all rows but one and sees an output finds no value of that row more "
            "than {} times as likely as another.",
            "Somebody who knows all rows but one can rule out a value of that row.",
        ),
        worst=_posterior,
    ),
    "mutual-information": Line(
        lambda value, case: (
            f"On average an output tells {nats(value)} about the database, of "
            f"{_nats(up(case.entropy(), DIGITS))} there are to know."
        ),
        lambda case: information(case.channel, case.passed()),
    ),
    "pml": Line(
        ratio(
            "No output multiplies the chance of guessing any feature of the database by more than "
            "{}.",
            "Some output makes a guess right that had no chance before.",
        ),
        lambda case: case.leakages[0],
        _leading,
    ),
    "row-pml": Line(_row_worst, lambda case: max(case.row_levels)),
    "max-information": Line(
        ratio(
            "No output makes a database more than {} times as likely as before.",
            "Some output makes a database likely that seemed impossible.",
        ),
        lambda case: case.leakages[0],
        _leading,
    ),
    "information-privacy": Line(
        ratio(
            "No output makes a database more than {0} times as likely, or as unlikely, as before.",
            "Some output rules out a database that can occur.",
        ),
        lambda case: max(case.leakages),
    ),
    "leakage-factor": Line(
        share("On average an output tells {} of what there is to know about the database."),
        lambda case: case.factor,
    ),
    "worst-leakage-factor": Line(
        share("The most telling output takes away {} of the uncertainty about the database."),
        lambda case: worst_leakage_factor(case.channel, case.passed()),
    ),
    "error-probability": Line(wrong("the whole database"), _error_bound),
    "disclosure": Line(_disclosure, lambda case: case.leakages[1] == math.inf, _disclosed),
    "distortion": Line(_distortion, _distance),
    "maximal-correlation": Line(
        number(
            "No score of the output has a correlation of more than {} with any score of the "
            "database."
        ),
        lambda case: correlation(case.search(), case.prior).upper,
    ),
    "sdpi": Line(
        share(
            "Of whatever such databases tell about any other secret, at most {} reaches the output."
        ),
        lambda case: accurate_sdpi(case.search(), case.prior, time_limit=case.seconds(2)),
    ),
    "constrained-capacity": Line(
        amount(
            "About any one row an output tells at most {} on average to everybody who is at least "
            "as unsure about the database as this prior."
        ),
        lambda case: constrained_capacity(case.search(), _lacking(case), time_limit=case.time()),
    ),
}


def _lacking(case: Case) -> float:
    """Entropy of the prior, from below, and at most ln N."""
    entropy = case.prior.entropy()
    least = entropy.lower if isinstance(entropy, Bracket) else lowered(entropy, 512.0)
    return min(least, math.log(case.channel.space.size))


def _threshold(value: Value, case: Case) -> str:
    if top(value) == math.inf:
        return "A single database can occur, so there is nothing to disclose."
    least = _nats(down(top(value), DIGITS))
    return f"A mechanism that leaks less than {least} cannot disclose anything."


#: Facts about the prior alone.
FACTS: dict[str, Line] = {
    "entropy": Line(amount("Whoever sees no output lacks {} about the database.")),
    "min-entropy": Line(
        lambda value, case: (
            "Without any output, the best guess of the database is right with probability "
            + (
                converted(math.exp(-top(value)))
                if top(value) < 700
                else f"e^-{down(top(value), DIGITS)}"
            )
            + "."
        )
    ),
    "epsilon-x": Line(
        ratio(
            "Before any output, a database is up to {} times as likely as a neighbour.",
            "Some databases are impossible.",
        )
    ),
    "epsilon-hat": Line(
        lambda value, case: (
            "No epsilon makes randomised response on every row the proved optimum."
            if top(value) == math.inf
            else f"From epsilon {up(top(value), DIGITS)} on, no differentially private mechanism "
            "changes fewer rows than randomised response on every row."
        )
    ),
    "epsilon-tilde": Line(
        lambda value, case: (
            "The mechanism E_i does not exist for this prior at any epsilon."
            if top(value) == math.inf
            else f"From epsilon {up(top(value), DIGITS)} on, the mechanism E_i exists, which is "
            "best for identifiability."
        ),
        lambda case: case.passed().epsilon_tilde(),
    ),
    "disclosure-threshold": Line(_threshold),
}
