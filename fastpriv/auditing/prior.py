"""Levels that depend on the law of the database, and facts about that law."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._text.words import Value, factor, nats, rounded, top
from fastpriv.auditing.case import (
    SEARCHED,
    Case,
    D,
    M,
    Notion,
    P,
    W,
    amount,
    number,
    ratio,
    share,
    wrong,
)
from fastpriv.errors import InvalidInput
from fastpriv.measures.capacity import searched_entries
from fastpriv.measures.constrained import constrained_capacity
from fastpriv.measures.correlation import correlation
from fastpriv.measures.disclosure import discloses, disclosure_threshold
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import posterior_level
from fastpriv.measures.fano import error_probability_bound
from fastpriv.measures.information import information
from fastpriv.measures.leakage import worst_leakage_factor
from fastpriv.measures.sdpi import sdpi
from fastpriv.measures.witnesses import step_witness
from fastpriv.results import Bracket, Witness

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
    return error_probability_bound(top(case.factor), case.prior)


def _disclosure(value: Value, case: Case) -> str:
    threshold, level = disclosure_threshold(case.prior), case.leakages[0]
    if value:
        rows = _given_away(case)
        many = "s" if len(rows) > 1 else ""
        named = f", and the value of row{many} {', '.join(map(str, rows))}" if rows else ""
        return (
            "Yes: some output rules out a database that can occur, and so gives away for certain "
            f"that it is not that one{named}; the leakage is up to {rounded(level, 4)} nats."
        )
    if threshold == math.inf:
        return "No: a single database can occur, so there is nothing to disclose."
    side, does = ("below", "proves") if level < threshold else ("not below", "would prove")
    return (
        "No: every output leaves every database that can occur possible, so no question about it "
        f"is settled for certain; the leakage of {rounded(level, 4)} nats is {side} the threshold "
        f"of {rounded(threshold, 4, down=True)} nats, which alone {does} it."
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
    found = case.extreme
    ends = (found.database, found.other)
    if all(x is not None and case.prior.log_prob(x) > -math.inf for x in ends):
        return found
    check.fits(searched_entries(case.channel), "the matrix to search", "ask discloses", SEARCHED)
    alive = np.flatnonzero(case.prior._vector())
    laws = case.channel.matrix()[alive]
    y = int(((laws.max(axis=0) > 0.0) & (laws.min(axis=0) == 0.0)).argmax())
    x, other = case.channel.space.rows(alive[[laws[:, y].argmax(), laws[:, y].argmin()]])
    return Witness(case.channel.output_space.rows(y), x, other)


def _distortion(value: Value, case: Case) -> str:
    n = case.channel.space.n
    return f"{rounded(top(value), 4)} of {n:,} row{'s' if n > 1 else ''} are expected to change."


#: Levels that depend on the law of the database.
UNDER_PRIOR = (
    Notion(
        "identifiability",
        "identifiability",
        "nats",
        f"{W}, Definition 2",
        lambda case: posterior_level(case.channel, case.prior),
        ratio(
            "Whoever knows all rows but one and sees an output finds no value of that row more "
            "than {} times as likely as another.",
            "Somebody who knows all rows but one can rule out a value of that row.",
        ),
        _posterior,
    ),
    Notion(
        "mutual-information",
        "mutual information",
        "nats",
        f"{W}, Definition 4",
        lambda case: information(case.channel, case.passed()),
        lambda value, case: (
            f"On average an output tells {nats(value)} about the database, of "
            f"{rounded(case.entropy(), 4)} nats there are to know."
        ),
    ),
    Notion(
        "pml",
        "pointwise maximal leakage",
        "nats",
        f"{P}, Definition 2.6",
        lambda case: case.leakages[0],
        ratio(
            "No output multiplies the chance of guessing any feature of the database by more than "
            "{}.",
            "Some output makes a guess right that had no chance before.",
        ),
        _leading,
    ),
    Notion(
        "row-pml",
        "leakage about the worst row",
        "nats",
        f"{P}, Section 4",
        lambda case: max(case.row_levels),
        _row_worst,
    ),
    Notion(
        "max-information",
        "max-information",
        "nats",
        f"{D}, Definition 7",
        lambda case: case.leakages[0],
        ratio(
            "No output makes a database more than {} times as likely as before.",
            "Some output makes a database likely that seemed impossible.",
        ),
        _leading,
    ),
    Notion(
        "information-privacy",
        "information privacy",
        "nats",
        f"{M}, Definition 7",
        lambda case: max(case.leakages),
        ratio(
            "No output makes a database more than {0} times as likely, or as unlikely, as before.",
            "Some output rules out a database that can occur.",
        ),
    ),
    Notion(
        "leakage-factor",
        "leakage factor",
        "share",
        f"{M}, Definition 1",
        lambda case: case.factor,
        share("On average an output tells {} of what there is to know about the database."),
    ),
    Notion(
        "worst-leakage-factor",
        "worst leakage factor",
        "share",
        f"{M}, Definition 7",
        lambda case: worst_leakage_factor(case.channel, case.passed()),
        share("The most telling output takes away {} of the uncertainty about the database."),
    ),
    Notion(
        "error-probability",
        "chance of a wrong guess",
        "probability",
        f"{M}, Proposition 1 (Fano)",
        _error_bound,
        wrong("the whole database"),
    ),
    Notion(
        "disclosure",
        "disclosure",
        "",
        f"{P}, Definition 3.3 and Proposition 3.8",
        lambda case: case.leakages[1] == math.inf,
        _disclosure,
        _disclosed,
    ),
    Notion(
        "distortion",
        "expected distortion",
        "rows",
        f"expected Hamming distance; {W}",
        _distance,
        _distortion,
    ),
    Notion(
        "maximal-correlation",
        "maximal correlation",
        "",
        f"{M}, Definition 5",
        lambda case: correlation(case.search(), case.prior).upper,
        number(
            "No score of the output has a correlation of more than {} with any score of the "
            "database."
        ),
    ),
    Notion(
        "sdpi",
        "strong data-processing constant",
        "share",
        f"{M}, Definition 4",
        lambda case: sdpi(case.search(), case.prior),
        share(
            "Of whatever such databases tell about any other secret, at most {} reaches the output."
        ),
    ),
    Notion(
        "constrained-capacity",
        "individual capacity at this entropy",
        "nats",
        f"{D}, Definition 5 with Assumption 3",
        lambda case: constrained_capacity(case.search(), _lacking(case), time_limit=case.time()),
        amount(
            "About any one row an output tells at most {} on average to everybody who is at least "
            "as unsure about the database as this prior."
        ),
    ),
)


def _lacking(case: Case) -> float:
    """Entropy of the prior, from below, and at most ln N."""
    entropy = case.prior.entropy()
    least = entropy.lower if isinstance(entropy, Bracket) else entropy * (1.0 - 2.0**-44)
    return min(least, math.log(case.channel.space.size))


def _threshold(value: Value, case: Case) -> str:
    if top(value) == math.inf:
        return "A single database can occur, so there is nothing to disclose."
    least = rounded(top(value), 4, down=True)
    return f"A mechanism that leaks less than {least} nats cannot disclose anything."


#: Facts about the prior alone.
FACTS = (
    Notion(
        "entropy",
        "entropy",
        "nats",
        "Shannon",
        lambda case: case.prior.entropy(),
        amount("There are {} to know about the database."),
    ),
    Notion(
        "min-entropy",
        "min-entropy",
        "nats",
        "Renyi",
        lambda case: case.prior.min_entropy(),
        lambda value, case: (
            "Without any output, the best guess of the database is right with probability "
            + (
                rounded(math.exp(-top(value)), 4)
                if top(value) < 700
                else f"e^-{rounded(top(value), 4, down=True)}"
            )
            + "."
        ),
    ),
    Notion(
        "epsilon-x",
        "eps_X",
        "nats",
        f"{W}, eq. (16)",
        lambda case: case.prior.epsilon_x(),
        ratio(
            "Before any output, a database is up to {} times as likely as a neighbour.",
            "Some databases are impossible.",
        ),
    ),
    Notion(
        "epsilon-hat",
        "eps_hat",
        "nats",
        "from here on E_d is optimal",
        lambda case: case.prior.epsilon_hat(),
        lambda value, case: (
            "No epsilon makes randomised response on every row the proved optimum."
            if top(value) == math.inf
            else f"From epsilon {rounded(top(value), 4)} on, no differentially private mechanism "
            "changes fewer rows than randomised response on every row."
        ),
    ),
    Notion(
        "epsilon-tilde",
        "eps_tilde",
        "nats",
        f"{W}, Section 3",
        lambda case: case.passed().epsilon_tilde(),
        lambda value, case: (
            "The mechanism E_i does not exist for this prior at any epsilon."
            if top(value) == math.inf
            else f"From epsilon {rounded(top(value), 4)} on, the mechanism E_i exists, which is "
            "best for identifiability."
        ),
    ),
    Notion(
        "disclosure-threshold",
        "disclosure threshold",
        "nats",
        f"{P}, Proposition 3.8",
        lambda case: disclosure_threshold(case.prior),
        _threshold,
    ),
)
