"""What an audit measures: for every notion its formula, its sentence and what attains it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpriv import _validation as check
from fastpriv.auditing._words import Value, Worst, factor, nats, percent, rounded, top
from fastpriv.channels import AbstractChannel
from fastpriv.distributions import Distribution
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.measures.balance import constrained_capacity
from fastpriv.measures.disclosure import discloses, disclosure_threshold, singles_out
from fastpriv.measures.hockey_stick import hockey_stick_epsilon
from fastpriv.measures.inference import error_probability_bound
from fastpriv.measures.leakage import leakage_factor, worst_leakage_factor
from fastpriv.results import Bracket, IndividualCapacity, Witness

_W, _M = "Wang-Ying-Zhang 2015", "Makhdoumi-Fawaz 2013"
_D, _P = "Wu-Xia-He 2020", "Saeidian et al. 2024"

#: Deltas of (epsilon, delta)-differential privacy.
DELTAS = (1e-3, 1e-6, 1e-9)
#: Entries, and comparisons of entries, that an audit waits for.
_SEARCHED, _COMPARED = 1 << 20, 1 << 27
#: Rows that are looked at one by one, and values of all databases that are listed.
_ROWS, _LISTED = 64, 1 << 20
#: Width to which capacities are bracketed.
_GAP = 1e-9


class Case:
    """A mechanism, perhaps with a prior, and the time that is left for it."""

    def __init__(self, channel: AbstractChannel, prior: Distribution | None, limit: float) -> None:
        self.channel, self._prior = channel, prior
        self._end = time.monotonic() + limit

    @property
    def prior(self) -> Distribution:
        """The prior, asked for by notions that need one."""
        assert self._prior is not None
        return self._prior

    def time(self) -> float:
        """Return half of the seconds that are left, for one search."""
        left = self._end - time.monotonic()
        if left <= 0.0:
            raise TooLarge("the time limit was used up before; give a larger time_limit")
        return 0.5 * left

    def search(self) -> AbstractChannel:
        """Return the channel for an optimisation, unless that takes too long."""
        self.time()
        check.fits(
            self.channel.searched_entries, "the matrix to search", "call the measure", _SEARCHED
        )
        return self.channel

    def compare(self) -> AbstractChannel:
        """Return the channel for a comparison of all neighbours, unless that takes too long."""
        self.time()
        work = self.channel.searched_entries * max(self.channel.space.sizes)
        check.fits(work, "the comparison of neighbours", "call the measure", _COMPARED)
        return self.channel

    @cached_property
    def leakages(self) -> tuple[float, float]:
        """How far outputs move the odds of databases at most, up and down."""
        return self.channel.leakage_levels(self.prior)

    @cached_property
    def extreme(self) -> Witness:
        """What attains the largest ratio between any two databases."""
        return self.channel.extreme_witness()

    @cached_property
    def leading(self) -> Witness:
        """The output that leaks most."""
        return self.channel.leakage_witness(self.prior)

    @cached_property
    def factor(self) -> Value:
        """Share of the database's entropy that an output tells on average."""
        return leakage_factor(self.channel, self.prior)

    @cached_property
    def individual(self) -> IndividualCapacity:
        """Individual capacity."""
        return self.search().individual_capacity(1, _GAP, self.time())

    @cached_property
    def row_levels(self) -> list[float]:
        """Largest leakage about each row."""
        check.fits(self.channel.space.n, "the list of rows", "ask row_pml for one row", _ROWS)
        levels = []
        for i in range(self.channel.space.n):
            self.time()
            levels.append(self.channel.row_level(self.prior, i))
        return levels

    def entropy(self) -> float:
        """H(X), from above."""
        return top(self.prior.entropy())


@dataclass(frozen=True)
class Notion:
    """One line of an audit."""

    slug: str
    title: str
    unit: str
    source: str
    measure: Callable[[Case], Value]
    says: Callable[[Value, Case], str]
    worst: Callable[[Case], Worst] | None = None


def _ratio(finite: str, infinite: str) -> Callable[[Value, Case], str]:
    """Say that a factor is at most e^level, or what an infinite level means."""

    def says(value: Value, case: Case) -> str:
        level = top(value)
        return infinite if level == math.inf else finite.format(factor(level))

    return says


def _amount(text: str) -> Callable[[Value, Case], str]:
    return lambda value, case: text.format(nats(value))


def _share(text: str) -> Callable[[Value, Case], str]:
    return lambda value, case: text.format(percent(top(value)))


def _number(text: str, *, down: bool = False) -> Callable[[Value, Case], str]:
    return lambda value, case: text.format(rounded(top(value), 4, down=down))


def _step(case: Case) -> Witness:
    return case.channel.step_witness()


def _extreme(case: Case) -> Witness:
    return case.extreme


def _posterior(case: Case) -> Witness:
    return case.channel.step_witness(case.prior)


def _leading(case: Case) -> Witness:
    return case.leading


def _approximate(delta: float) -> Notion:
    return Notion(
        f"approximate-dp-{delta:.0e}".replace("e-0", "e-"),
        f"differential privacy at delta {delta:.0e}".replace("e-0", "e-"),
        "nats",
        f"{_M}, Definition 7",
        lambda case: hockey_stick_epsilon(case.compare(), delta),
        _ratio(
            f"For neighbours the chances of any event differ by a factor of at most {{}}, plus "
            f"{delta:g}.",
            f"Neighbours give more than {delta:g} to outputs that the other one rules out.",
        ),
    )


def _ruling_out(value: Value, case: Case) -> str:
    count = int(top(value))
    if count == 0:
        return "No output rules any database out: 0 of " + _outputs(case) + "."
    rows = case.channel.ruling_out()[1]
    named = ", ".join(" ".join(map(str, row[:16].tolist())) for row in rows)
    more = ", ..." if count > len(rows) else ""
    return f"{short(count)} of {_outputs(case)} rule some database out for certain: {named}{more}."


def _outputs(case: Case) -> str:
    size = case.channel.output_space.size
    return f"{short(size)} output{'s' if size > 1 else ''}"


def _singles_out(value: Value, case: Case) -> str:
    if value:
        return "Yes: some output leaves a single database possible, and so tells everything."
    return "No: whatever comes out, more than one database remains possible."


#: Levels that hold whatever the law of the database.
ALWAYS = (
    Notion(
        "dp",
        "differential privacy",
        "nats",
        f"{_W}, Definition 3",
        lambda case: case.channel.neighbour_level(),
        _ratio(
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
        lambda case: case.channel.realised_level(),
        _ratio(
            "What sample() really draws, in integers, keeps neighbours within a factor of {}.",
            "What sample() really draws rules neighbours out as well.",
        ),
    ),
    Notion(
        "strong-dp",
        "strong differential privacy, leakage capacity",
        "nats",
        f"{_M}, Definition 7; {_P}, Definition 2.7",
        lambda case: case.channel.extreme_level(),
        _ratio(
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
        f"{_D}, Definition 8",
        lambda case: case.channel.extreme_level(),
        _ratio(
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
        lambda case: case.channel.maximal_leakage(),
        _ratio(
            "Seeing an output multiplies the chance of guessing any secret in the database by at "
            "most {} on average.",
            "Seeing an output helps to guess secrets without limit.",
        ),
    ),
    Notion(
        "channel-capacity",
        "channel capacity",
        "nats",
        f"Shannon 1948; {_D}, Section 3",
        lambda case: case.search().capacity(_GAP),
        _amount("An output tells at most {} about the database on average, whoever draws it."),
    ),
    Notion(
        "individual-capacity",
        "individual capacity",
        "nats",
        f"{_D}, Definition 5",
        lambda case: Bracket(case.individual.lower, case.individual.upper),
        _amount(
            "About any one row an output tells at most {} on average, even to somebody who knows "
            "how the rows hang together."
        ),
        lambda case: case.individual.adversary,
    ),
    Notion(
        "contraction",
        "contraction coefficient",
        "share",
        f"{_M}, Theorem 3",
        lambda case: case.search().contraction(),
        _share(
            "Of whatever the database tells about any other secret, at most {} reaches the output."
        ),
    ),
    Notion(
        "ruling-out",
        "outputs that rule databases out",
        "outputs",
        f"{_P}, Definition 3.3",
        lambda case: case.channel.ruling_out()[0],
        _ruling_out,
        _extreme,
    ),
    Notion(
        "singles-out",
        "singling out",
        "",
        f"{_P}, Definition 3.9",
        lambda case: singles_out(case.channel),
        _singles_out,
    ),
)


def _distance(case: Case) -> float:
    if case.channel.output_space != case.channel.space:
        raise InvalidInput(
            "outputs are not databases; distortion(channel, prior, metric) takes a metric"
        )
    return case.channel.expected_distance(case.prior)


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
        named = f" and the value of row {', '.join(map(str, rows))}" if rows else ""
        return (
            "Yes: some output rules out a database that can occur, and so gives away for certain "
            f"that it is not that one{named}; the leakage is up to {rounded(level, 4)} nats."
        )
    side = "below" if level < threshold else "not below"
    return (
        "No: every output leaves every database that can occur possible, so no question about it "
        f"is settled for certain; the leakage of {rounded(level, 4)} nats is {side} the threshold "
        f"{rounded(threshold, 4, down=True)} which alone would prove it."
    )


def _given_away(case: Case) -> list[int]:
    """Rows whose value some output settles, where there are few enough databases to ask."""
    space = case.channel.space
    if space.size * space.n > _LISTED or case.channel.searched_entries > _SEARCHED:
        return []
    values = space.rows(np.arange(space.size)).T
    return [i for i in range(space.n) if discloses(case.channel, values[i], case.prior)]


def _disclosed(case: Case) -> Witness:
    """Return an output with a database it can come from and one it rules out, both possible."""
    found = case.extreme
    ends = (found.database, found.other)
    if all(x is not None and case.prior.log_prob(x) > -math.inf for x in ends):
        return found
    check.fits(case.channel.searched_entries, "the matrix to search", "ask discloses", _SEARCHED)
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
        f"{_W}, Definition 2",
        lambda case: case.channel.posterior_level(case.prior),
        _ratio(
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
        f"{_W}, Definition 4",
        lambda case: case.channel.information(case.prior),
        lambda value, case: (
            f"On average an output tells {nats(value)} about the database, of "
            f"{rounded(case.entropy(), 4)} nats there are to know."
        ),
    ),
    Notion(
        "pml",
        "pointwise maximal leakage",
        "nats",
        f"{_P}, Definition 2.6",
        lambda case: case.leakages[0],
        _ratio(
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
        f"{_P}, Section 4",
        lambda case: max(case.row_levels),
        _row_worst,
    ),
    Notion(
        "max-information",
        "max-information",
        "nats",
        f"{_D}, Definition 7",
        lambda case: case.leakages[0],
        _ratio(
            "No output makes a database more than {} times as likely as before.",
            "Some output makes a database likely that seemed impossible.",
        ),
        _leading,
    ),
    Notion(
        "information-privacy",
        "information privacy",
        "nats",
        f"{_M}, Definition 7",
        lambda case: max(case.leakages),
        _ratio(
            "No output makes a database more than {0} times as likely, or as unlikely, as before.",
            "Some output rules out a database that can occur.",
        ),
    ),
    Notion(
        "leakage-factor",
        "leakage factor",
        "share",
        f"{_M}, Definition 1",
        lambda case: case.factor,
        _share("On average an output tells {} of what there is to know about the database."),
    ),
    Notion(
        "worst-leakage-factor",
        "worst leakage factor",
        "share",
        f"{_M}, Definition 7",
        lambda case: worst_leakage_factor(case.channel, case.prior),
        _share("The most telling output takes away {} of the uncertainty about the database."),
    ),
    Notion(
        "error-probability",
        "chance of a wrong guess",
        "probability",
        f"{_M}, Proposition 1 (Fano)",
        _error_bound,
        _number(
            "Whoever guesses the whole database from an output is wrong with probability {} or "
            "more, however clever.",
            down=True,
        ),
    ),
    Notion(
        "disclosure",
        "disclosure",
        "",
        f"{_P}, Definition 3.3 and Proposition 3.8",
        lambda case: case.leakages[1] == math.inf,
        _disclosure,
        _disclosed,
    ),
    Notion(
        "distortion",
        "expected distortion",
        "rows",
        f"expected Hamming distance; {_W}",
        _distance,
        _distortion,
    ),
    Notion(
        "maximal-correlation",
        "maximal correlation",
        "",
        f"{_M}, Definition 5",
        lambda case: case.search().correlation(case.prior).upper,
        _number(
            "No score of the output has a correlation of more than {} with any score of the "
            "database."
        ),
    ),
    Notion(
        "sdpi",
        "strong data-processing constant",
        "share",
        f"{_M}, Definition 4",
        lambda case: case.search().sdpi(case.prior),
        _share(
            "Of whatever such databases tell about any other secret, at most {} reaches the output."
        ),
    ),
    Notion(
        "constrained-capacity",
        "individual capacity at this entropy",
        "nats",
        f"{_D}, Definition 5 with Assumption 3",
        lambda case: constrained_capacity(case.search(), _lacking(case), time_limit=case.time()),
        _amount(
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


#: Facts about the prior alone.
FACTS = (
    Notion(
        "entropy",
        "entropy",
        "nats",
        "Shannon",
        lambda case: case.prior.entropy(),
        _amount("There are {} to know about the database."),
    ),
    Notion(
        "min-entropy",
        "min-entropy",
        "nats",
        "Renyi",
        lambda case: case.prior.min_entropy(),
        lambda value, case: (
            "Without any output, the best guess of the database is right with probability "
            + (rounded(math.exp(-top(value)), 4) if top(value) < 700 else f"e^-{top(value):.4g}")
            + "."
        ),
    ),
    Notion(
        "epsilon-x",
        "eps_X",
        "nats",
        f"{_W}, eq. (16)",
        lambda case: case.prior.epsilon_x(),
        _ratio(
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
        f"{_W}, Section 3",
        lambda case: case.prior.epsilon_tilde(),
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
        f"{_P}, Proposition 3.8",
        lambda case: disclosure_threshold(case.prior),
        _number("A mechanism that leaks less than {} nats cannot disclose anything.", down=True),
    ),
)
