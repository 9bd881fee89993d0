"""How an audit measures each notion, states it in one sentence, and points at what attains it.

:data:`LINES` has one :class:`Line` for each notion. The functions above it write the parts of
sentences: factors, amounts of information, shares and worst cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from fastpriv._core.rounding import lowered
from fastpriv._text.numbers import down, quantity, up
from fastpriv.auditing.case import GAP, Case, SecretCase, guaranteed
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.approximate_dp import hockey_stick_epsilon
from fastpriv.measures.capacity import capacity
from fastpriv.measures.constrained import constrained_given
from fastpriv.measures.contraction import contraction
from fastpriv.measures.correlation import correlation
from fastpriv.measures.disclosure import singles_out
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import dp_level
from fastpriv.measures.fano import error_probability_bound
from fastpriv.measures.identifiability import identifiability_level
from fastpriv.measures.information import information
from fastpriv.measures.leakage import maximal_leakage, worst_leakage_factor
from fastpriv.measures.realised import realised_level
from fastpriv.measures.sdpi import accurate_sdpi
from fastpriv.notions.registry import DELTAS, NOTIONS, delta_slug
from fastpriv.results import Adversary, Bracket, Value, Worst, top, written

#: Digits of a number within a sentence.
_DIGITS = 4
#: Digits of a converted number: e^level and bits of a level that is rounded up have no more.
_CONVERTED = 13
#: Levels up to which people read e^level as a number.
_READ = 14.0
#: Levels below which e^level is written as 1 + x, because its first digits are 1.0000.
_NEAR_ZERO = 1e-4
#: Brackets that are wider than this share of their upper bound are written with both bounds.
_WIDE = 1e-3
#: Levels from which on e^-level underflows.
_UNDERFLOW = 700.0
#: Probabilities of an adversary's databases below this one are the rounding of an optimisation.
_BELIEVED = 1e-6
#: Databases of an adversary, and records, that a sentence lists.
_LISTED_DATABASES = 4
_LISTED_RECORDS = 8
#: Values of an output that a sentence lists.
_LISTED_VALUES = 16
#: Relative error of an entropy in units of 2^-53, with much to spare.
_ENTROPY_ERROR = 512.0

Sentence = Callable[[Value, Case], str]


@dataclass(frozen=True)
class Line:
    """How an audit measures a notion and puts it into words.

    Attributes
    ----------
    measure : callable
        The number. A measure whose cost grows with the number of databases takes ``case.search()``
        for an optimisation and ``case.compare()`` for all pairs of neighbours instead of
        ``case.channel``, and ``case.passed()`` instead of ``case.prior``. They raise TooLarge for
        mechanisms that would take too long; the audit then lists the notion as skipped.
    meaning : callable
        One sentence that states what the number means.
    worst : callable or None
        What attains the number, if anything can be pointed at.
    """

    measure: Callable[[Case], Value]
    meaning: Sentence
    worst: Callable[[Case], Worst | None] | None = None


def secret_line(
    measure: Callable[[SecretCase], Value],
    meaning: Sentence,
    worst: Callable[[SecretCase], Worst] | None = None,
) -> Line:
    """Return the line of a notion about a secret."""

    def of_secret(case: Case) -> SecretCase:
        assert isinstance(case, SecretCase)
        return case

    return Line(
        lambda case: measure(of_secret(case)),
        meaning,
        None if worst is None else lambda case: worst(of_secret(case)),
    )


# Parts of sentences.


def converted(number: float, digits: int = _DIGITS) -> str:
    """Write a converted number, rounded up, without the last digits, which are rounding errors."""
    return up(float(f"{number:.{_CONVERTED}g}"), digits)


def factor(level: float) -> str:
    """Write e^level, rounded up, the way people read factors."""
    if level == 0.0:
        return "1"
    if level < _NEAR_ZERO:
        return f"1 + {converted(math.expm1(level))}"
    digits = _DIGITS - min(0, math.floor(math.log10(level)) + 1)  # four of what exceeds 1
    return converted(math.exp(level), digits) if level <= _READ else f"e^{up(level, _DIGITS)}"


def nats(value: Value) -> str:
    """Write an amount of information in nats and bits, or the two bounds of one."""
    number = up(top(value), _DIGITS)
    if number == "infinite":
        return number
    bits = quantity(converted(top(value) / math.log(2.0)), "bits")
    if isinstance(value, Bracket) and value.width > _WIDE * value.upper:
        bits += f"; {quantity(down(value.lower, _DIGITS), 'nats')} can be attained"
    return f"{quantity(number, 'nats')} ({bits})"


def nats_up(number: float) -> str:
    """Write nats, rounded up."""
    return quantity(up(number, _DIGITS), "nats")


def nats_down(number: float) -> str:
    """Write nats, rounded down."""
    return quantity(down(number, _DIGITS), "nats")


def percent(share: float) -> str:
    """Write a share as a percentage, rounded up."""
    return f"{up(float(Decimal(repr(float(share))).scaleb(2)), _DIGITS)} %"


def ratio(finite: str, infinite: str) -> Sentence:
    """State that a factor is at most e^level, or what an infinite level means."""

    def sentence(value: Value, case: Case) -> str:
        level = top(value)
        return infinite if level == math.inf else finite.format(factor(level))

    return sentence


def amount(text: str) -> Sentence:
    """State an amount of information in nats and bits."""
    return lambda value, case: text.format(nats(value))


def share(text: str) -> Sentence:
    """State a share as a percentage."""
    return lambda value, case: text.format(percent(top(value)))


def wrong_guess(what: str) -> Sentence:
    """State how often a guess is wrong at least."""

    def sentence(value: Value, case: Case) -> str:
        lower = down(top(value), _DIGITS)
        if lower == "0":
            return f"An output may reveal {what}: the bound on the probability of an error is 0."
        return f"Every guess of {what} from an output is wrong with probability {lower} or more."

    return sentence


def where(worst: Worst, level: float, what: str = "") -> str:
    """State in one sentence what attains a level; ``what`` names what the output is about."""
    if isinstance(worst, Adversary):
        return _adversary(worst)
    output, x = written(worst.output), what + written(worst.database)
    if worst.other is None:
        return f"Output {output}, which points most to {x}."
    apart = "" if worst.row is None else f", which differ in record {worst.row}"
    other = written(worst.other)
    if level == math.inf:
        return f"Output {output} leaves {x} possible and rules out {other}{apart}."
    return f"Output {output}, for {x} against {other}{apart}."


def _adversary(worst: Adversary) -> str:
    """Write an adversary's prior, the likeliest databases first."""
    order = (-worst.law).argsort(kind="stable").tolist()
    beliefs = [
        f"{written(worst.databases[j])} ({worst.law[j]:.3g})"
        for j in order[:_LISTED_DATABASES]
        if worst.law[j] > _BELIEVED
    ]
    others = " or others" if (worst.law > _BELIEVED).sum() > _LISTED_DATABASES else ""
    records = ", ".join(map(str, worst.rows[:_LISTED_RECORDS]))
    return f"Record {records}, for an adversary who expects {' or '.join(beliefs)}{others}."


# Sentences of single notions.


def _approximate(delta: float) -> Line:
    return Line(
        lambda case: hockey_stick_epsilon(case.compare(), delta),
        ratio(
            f"Neighbours give any event probabilities within a factor of {{}}, plus {delta:g}.",
            f"Neighbours give more than {delta:g} to outputs that the other one rules out.",
        ),
    )


def _ruling_out(value: Value, case: Case) -> str:
    size = case.channel.output_count
    outputs = f"{short(size)} output{'s' if size > 1 else ''}"
    count, rows = case.ruling_out
    if count == 0:
        return f"No output rules out any database: 0 of {outputs}."
    named = ", ".join(" ".join(map(str, row[:_LISTED_VALUES].tolist())) for row in rows)
    more = ", ..." if count > len(rows) else ""
    return f"{short(count)} of {outputs} rule out some database: {named}{more}."


def _singles_out(value: Value, case: Case) -> str:
    if value:
        return "Yes: some output leaves a single database possible, and so reveals everything."
    if case.channel.space.size == 1:
        return "No: there is a single database, so no output reveals anything."
    return "No: every output leaves more than one database possible."


def _distance(case: Case) -> float:
    """Return the expected Hamming distance of database and output."""
    if case.channel.output_space != case.channel.space:
        raise InvalidInput(
            "outputs must be databases. Call distortion(channel, prior, metric) with a metric."
        )
    return expected_distance(case.channel, case.prior)


def _error_probability(case: Case) -> float:
    revealed = guaranteed(NOTIONS["leakage-factor"], case.factor)
    return error_probability_bound(top(revealed), case.prior)


def _constrained_capacity(case: Case) -> Bracket:
    """Return the individual capacity under priors of at least this entropy, rounded down."""
    entropy = case.entropy
    lower = entropy.lower if isinstance(entropy, Bracket) else lowered(entropy, _ENTROPY_ERROR)
    lower = min(lower, math.log(case.channel.space.size))
    return constrained_given(case.search(), lower, case.individual, case.time())


def _mutual_information(value: Value, case: Case) -> str:
    return (
        f"On average an output reveals {nats(value)} about the database, out of an entropy of "
        f"{nats_up(top(case.entropy))}."
    )


def _worst_record(value: Value, case: Case) -> str:
    record = int(np.argmax(case.record_levels))
    return (
        f"The worst output multiplies the probability of guessing the value of record {record} by "
        f"at most {factor(top(value))}; no record leaks more."
    )


def _disclosure(value: Value, case: Case) -> str:
    level = case.leakages[0]
    if value:
        records = case.revealed_records()
        many = "s" if len(records) > 1 else ""
        listed = ", ".join(map(str, records))
        named = f", and some output reveals the value of record{many} {listed}" if records else ""
        return (
            f"Yes: some output rules out a database that can occur{named}; "
            f"the leakage is up to {nats_up(level)}."
        )
    if case.threshold == math.inf:
        return "No: a single database can occur, so there is nothing to disclose."
    side, proves = ("below", "proves") if level < case.threshold else ("not below", "would prove")
    return (
        "No: every output leaves every database possible that can occur; "
        f"the leakage of {nats_up(level)} is {side} the threshold of "
        f"{nats_down(case.threshold)}, which alone {proves} it."
    )


def _distortion(value: Value, case: Case) -> str:
    n, changed = case.channel.space.n, up(top(value), _DIGITS)
    verb = "is" if n == 1 or changed == "1" else "are"
    return f"{changed} of {n:,} record{'s' if n > 1 else ''} {verb} expected to change."


def _correlation(value: Value, case: Case) -> str:
    return (
        f"No score of the output has a correlation of more than {up(top(value), _DIGITS)} with any "
        "score of the database."
    )


def _min_entropy(value: Value, case: Case) -> str:
    level = top(value)
    right = converted(math.exp(-level)) if level < _UNDERFLOW else f"e^-{down(level, _DIGITS)}"
    return f"Without an output, the best guess of the database is right with probability {right}."


def _epsilon_hat(value: Value, case: Case) -> str:
    if top(value) == math.inf:
        return "No epsilon makes randomised response on every record the proved optimum."
    return (
        f"From epsilon {up(top(value), _DIGITS)} on, no differentially private mechanism changes "
        "fewer records than randomised response on every record."
    )


def _epsilon_tilde(value: Value, case: Case) -> str:
    if top(value) == math.inf:
        return "The mechanism E_i does not exist for this prior at any epsilon."
    return (
        f"From epsilon {up(top(value), _DIGITS)} on, the mechanism E_i exists, which is best for "
        "identifiability."
    )


def _threshold(value: Value, case: Case) -> str:
    if top(value) == math.inf:
        return "A single database can occur, so there is nothing to disclose."
    return f"A mechanism that leaks less than {nats_down(top(value))} cannot disclose anything."


#: Levels that hold for every distribution of the database.
_MECHANISM = {
    **{delta_slug(delta): _approximate(delta) for delta in DELTAS},
    "dp": Line(
        lambda case: dp_level(case.channel),
        ratio(
            "Changing one record changes the probability of any output by a factor of at most {}.",
            "Some output is possible for one database and impossible for a neighbour.",
        ),
        lambda case: case.neighbours,
    ),
    "realised-dp": Line(
        lambda case: realised_level(case.channel),
        ratio(
            "The integer thresholds of sample() keep neighbours within a factor of {}.",
            "The integer thresholds of sample() can rule out a neighbour.",
        ),
    ),
    "strong-dp": Line(
        lambda case: case.strong_level,
        ratio(
            "Any two databases give every output probabilities within a factor of {}.",
            "Some output is possible for one database and impossible for another.",
        ),
        lambda case: case.extreme,
    ),
    "max-individual-capacity": Line(
        lambda case: case.strong_level,
        ratio(
            "Under every prior, an output makes a value of one record at most {} times as likely "
            "as before.",
            "Under some prior, an output reveals a value of one record that was arbitrarily "
            "unlikely.",
        ),
        lambda case: case.extreme,
    ),
    "maximal-leakage": Line(
        lambda case: maximal_leakage(case.channel),
        ratio(
            "On average an output multiplies the probability of guessing any secret in the "
            "database by at most {}.",
            "On average an output helps to guess secrets without limit.",
        ),
    ),
    "channel-capacity": Line(
        lambda case: capacity(case.search(), GAP),
        amount("On average an output reveals at most {} about the database, under every prior."),
    ),
    "individual-capacity": Line(
        lambda case: Bracket(case.individual.lower, case.individual.upper),
        amount(
            "On average an output reveals at most {} about any one record, under every prior, "
            "however the records depend on each other."
        ),
        lambda case: case.individual.adversary,
    ),
    "contraction": Line(
        lambda case: contraction(case.search()),
        share(
            "At most {} of the information that the database has about any secret reaches the "
            "output."
        ),
    ),
    "ruling-out": Line(
        lambda case: case.ruling_out[0],
        _ruling_out,
        lambda case: case.extreme,
    ),
    "singles-out": Line(lambda case: singles_out(case.channel), _singles_out),
}

#: Levels that depend on the distribution of the database.
_UNDER_PRIOR = {
    "identifiability": Line(
        lambda case: identifiability_level(case.channel, case.prior),
        ratio(
            "To an adversary who knows all other records, an output makes no value of a record "
            "more than {} times as likely as another.",
            "An adversary who knows all other records can rule out a value of a record.",
        ),
        lambda case: case.posterior,
    ),
    "mutual-information": Line(
        lambda case: information(case.channel, case.passed()),
        _mutual_information,
    ),
    "pml": Line(
        lambda case: case.leakages[0],
        ratio(
            "No output multiplies the probability of guessing any feature of the database by more "
            "than {}.",
            "Some output makes a guess right that had probability 0 before.",
        ),
        lambda case: case.leading,
    ),
    "row-pml": Line(lambda case: max(case.record_levels), _worst_record),
    "max-information": Line(
        lambda case: case.leakages[0],
        ratio(
            "No output makes a database more than {} times as likely as before.",
            "Some output makes a database likely that seemed impossible.",
        ),
        lambda case: case.leading,
    ),
    "information-privacy": Line(
        lambda case: max(case.leakages),
        ratio(
            "No output makes a database more than {0} times as likely, or as unlikely, as before.",
            "Some output rules out a database that can occur.",
        ),
    ),
    "leakage-factor": Line(
        lambda case: case.factor,
        share("On average an output reveals {} of the entropy of the database."),
    ),
    "worst-leakage-factor": Line(
        lambda case: worst_leakage_factor(case.channel, case.passed()),
        share("The worst output removes {} of the entropy of the database."),
    ),
    "error-probability": Line(
        _error_probability,
        wrong_guess("the whole database"),
    ),
    "disclosure": Line(
        lambda case: case.leakages[1] == math.inf,
        _disclosure,
        lambda case: case.disclosed(),
    ),
    "distortion": Line(_distance, _distortion),
    "maximal-correlation": Line(
        lambda case: correlation(case.search(), case.prior).upper,
        _correlation,
    ),
    "sdpi": Line(
        lambda case: accurate_sdpi(case.search(), case.prior, time_limit=case.seconds(2)),
        share(
            "At most {} of the information that databases under this prior have about any secret "
            "reaches the output."
        ),
    ),
    "constrained-capacity": Line(
        _constrained_capacity,
        amount(
            "On average an output reveals at most {} about any one record, under every prior that "
            "has at least the entropy of this one."
        ),
    ),
}

#: Levels about a secret S that reaches the output through the database.
_ABOUT_SECRET = {
    "secret-mutual-information": secret_line(
        lambda case: case.information(),
        amount("On average an output reveals {} about the secret."),
    ),
    "secret-pml": secret_line(
        lambda case: float(case.odds.above.max()),
        ratio(
            "No output makes a value of the secret more than {} times as likely as before.",
            "Some output makes a value likely that seemed impossible.",
        ),
        lambda case: case.leading_value(),
    ),
    "secret-information-privacy": secret_line(
        lambda case: max(case.odds.largest()),
        ratio(
            "No output makes a value of the secret more than {} times as likely, or as unlikely, "
            "as before.",
            "Some output rules out a value of the secret.",
        ),
    ),
    "secret-strong-dp": secret_line(
        lambda case: case.extreme_level(),
        ratio(
            "Any two values of the secret give every output probabilities within a factor of {}.",
            "Some output is possible for one value of the secret and impossible for another.",
        ),
    ),
    "secret-maximal-leakage": secret_line(
        lambda case: case.maximal_leakage(),
        ratio(
            "On average an output multiplies the probability of guessing the secret by at most {}.",
            "",
        ),
    ),
    "secret-leakage-factor": secret_line(
        lambda case: case.share(),
        share("On average an output reveals {} of the entropy of the secret."),
    ),
    "secret-worst-leakage-factor": secret_line(
        lambda case: case.share(worst=True),
        share("The worst output removes {} of the entropy of the secret."),
    ),
    "secret-error-probability": secret_line(
        lambda case: error_probability_bound(case.share(), case.prior),
        wrong_guess("the secret"),
    ),
}

#: Facts about the prior alone.
_FACTS = {
    "entropy": Line(
        lambda case: case.entropy,
        amount("Without an output, an adversary lacks {} about the database."),
    ),
    "min-entropy": Line(lambda case: case.prior.min_entropy(), _min_entropy),
    "epsilon-x": Line(
        lambda case: case.prior.epsilon_x(),
        ratio(
            "Before any output, a database is up to {} times as likely as a neighbour.",
            "Some databases are impossible.",
        ),
    ),
    "epsilon-hat": Line(lambda case: case.prior.epsilon_hat(), _epsilon_hat),
    "epsilon-tilde": Line(lambda case: case.passed().epsilon_tilde(), _epsilon_tilde),
    "disclosure-threshold": Line(lambda case: case.threshold, _threshold),
}

LINES: dict[str, Line] = _MECHANISM | _UNDER_PRIOR | _ABOUT_SECRET | _FACTS
