"""Spans: what an answer leaves possible, and the cases and quantities that have them.

A bracket is its own span, a program has the one from its bound to its value. A level is an upper
bound that is a few units in the last place above the truth, and an average is rounded to nearest.
All spans of one quantity must meet.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

import fastpriv as fp
from fuzz import specs

#: What a level may be above the truth, relative to it and in all.
LEVEL, LEVEL_LEAST = 1e-9, 2.0**-42
#: The same where priors are searched, or a polytope is described by a program.
SEARCHED, SEARCHED_LEAST = 1e-6, 1e-9
#: What an average may be off by, relative to it and in all.
AVERAGE, AVERAGE_LEAST = 1e-12, 1e-300
#: Seconds for a search over a set of priors; what it has proved by then must be true as well.
SECONDS = 0.5
#: Half a unit in the last place of one.
UNIT = 2.0**-53


@dataclass(frozen=True)
class Span:
    """What one call says about a quantity."""

    route: str
    low: float
    high: float
    #: The answer is about a matrix whose entries are off by this much, relative to each.
    off: float = 0.0

    def widened(self, moved):
        """Return the span where entries are moved by a share; ``moved(span)`` is the effect."""
        if not self.off:
            return self
        room = moved(self)
        return Span(self.route, self.low - room, self.high + room)


def level(route, given, off=0.0):
    """Return the span of an upper bound, or of a bracket."""
    if isinstance(given, fp.Bracket):
        return Span(route, given.lower, given.upper, off)
    given = float(given)
    low = given if math.isinf(given) else given - LEVEL * abs(given) - LEVEL_LEAST
    return Span(route, low, given, off)


def searched(route, given, off=0.0):
    """Return the span of an upper bound over a set of priors; of a polytope it may be infinite."""
    if route == "polytope" and given == math.inf:
        return above(route, given)
    if isinstance(given, fp.Bracket) or math.isinf(given):
        return level(route, given, off)
    return Span(route, given - SEARCHED * given - SEARCHED_LEAST, float(given), off)


def raised_level(route, given, off=0.0):
    """Return the span of an upper bound that allows for the rounding of a matrix, 2^-40 at most."""
    span = level(route, given, off)
    return Span(route, span.low - 2.0**-40, span.high, off)


def above(route, given, off=0.0):
    """Return the span of an upper bound that may be far from the truth."""
    return Span(route, -math.inf, float(given), off)


def average(route, given, off=0.0):
    """Return the span of a number that is rounded to nearest, or of a bracket."""
    if isinstance(given, fp.Bracket):
        return Span(route, given.lower, given.upper, off)
    given = float(given)
    room = AVERAGE * abs(given) + AVERAGE_LEAST
    return Span(route, given - room, given + room, off)


def optimum(route, given, off=0.0):
    """Return the span of the least value of a program."""
    if isinstance(given, fp.ExactSolution):
        return Span(route, float(given.value) * (1 - 4 * UNIT), float(given.value), off)
    return Span(route, given.bound, given.value, off)


# What an answer moves by where every entry of a matrix or a prior moves by a share.


def by_share(span):
    """Levels and probabilities: logarithms of ratios of two entries."""
    return 4.0 * span.off


def by_root(span):
    """Informations and contractions, whose derivative is of the order of their root."""
    most = max(span.high, 0.0)
    return 8.0 * (span.off * (most + math.sqrt(2.0 * most)) + span.off**2) if most < 1e9 else 0.0


class Case:
    """A channel and a prior, each in the ways that the library can hold them."""

    def __init__(self, spec):
        self.spec = spec
        self.sizes = specs.sizes_of(spec["channel"])
        self.n, self.size = len(self.sizes), math.prod(self.sizes)
        self.space = fp.Space(self.sizes)
        self.channel = specs.build_channel(spec["channel"])
        self.prior = specs.build_prior(spec["prior"])
        self.epsilon, self.delta, self.share = spec["epsilon"], spec["delta"], spec["share"]

    @cached_property
    def matrix(self):
        """The matrix of the channel."""
        return np.array(self.channel.matrix())

    @cached_property
    def pmf(self):
        """The probabilities of the prior."""
        return np.array(self.prior.pmf())

    @cached_property
    def dense(self):
        """The same matrix as a channel of no structure."""
        return fp.Channel(self.matrix, self.space)

    @cached_property
    def plain(self):
        """The same probabilities as a prior of no structure."""
        return fp.Dense(self.pmf, self.sizes)

    @cached_property
    def one(self):
        """The channel whose databases are values of a single record."""
        return fp.Channel(self.matrix)

    @cached_property
    def stack(self):
        """The matrix and a constant one, in a stack."""
        return np.stack([self.matrix, np.full_like(self.matrix, 1.0 / self.matrix.shape[1])])

    @cached_property
    def sums(self):
        """How far row sums are from one: laws may be read with or without division by them."""
        return max(abs(float(1 - sum(map(Fraction, row)))) for row in self.matrix.tolist())

    @cached_property
    def rounded(self):
        """Relative error of the entries of the matrix."""
        spec = self.spec["channel"]
        if spec["kind"] in ("dense", "query"):
            return 0.0
        if spec["kind"] == "product" and self.n * spec.get("bits", 53) < 53:
            return 0.0
        return (8 + 4 * self.n) * UNIT

    @cached_property
    def weighed(self):
        """Relative error of the probabilities of the prior, and of their sum."""
        spec = self.spec["prior"]
        if spec["kind"] == "dense" and sum(map(Fraction, spec["pmf"])) == 1:
            return 0.0
        return (8 + 4 * self.n) * UNIT

    @cached_property
    def ordinary(self):
        """Whether products of entries and probabilities are far from underflow."""
        numbers = specs.least_number([self.spec["channel"], self.spec["prior"]])
        return self.n * math.log(numbers) > -300.0

    @property
    def positive(self):
        """Whether every database has a positive probability."""
        return bool((self.pmf > 0.0).all())


@dataclass(frozen=True)
class Quantity:
    """A quantity and the calls that compute it."""

    #: case -> spans
    ask: Callable
    #: The share of instances that it is asked about.
    share: float = 1.0
    #: Whether a case has the routes.
    fits: Callable = lambda case: True
    #: Whether each span is only at most the next one.
    ordered: bool = False
    #: The effect of entries that move.
    moved: Callable = by_share


def is_structured(case):
    return case.ordinary and not isinstance(case.channel, fp.Channel)


def ways(case):
    """Yield (name, channel, prior, error) for all ways to hold the two."""
    yield "as made", case.channel, case.prior, 0.0
    yield "dense channel", case.dense, case.prior, case.rounded
    yield "dense prior", case.channel, case.plain, case.weighed
    yield "dense both", case.dense, case.plain, case.rounded + case.weighed


def channels(measure, kind=level, **options):
    """Return the question of structured and dense channels."""

    def ask(case):
        first = kind("structured", measure(case.channel, case))
        second = kind("dense", measure(case.dense, case), case.rounded + case.sums)
        return [first, second]

    return Quantity(ask, fits=is_structured, **options)


def exported(measure, off=0.0, **options):
    """Return the question whether the matrix of a channel keeps the channel's promise.

    Strictly, unless entries may be ``off`` by so many times their rounding.
    """

    def ask(case):
        most, dense = measure(case.channel), measure(case.dense)
        least = dense.lower if isinstance(dense, fp.Bracket) else dense
        return [Span("matrix", least, math.inf), above("channel", most, off * case.rounded)]

    return Quantity(
        ask, ordered=True, fits=lambda c: is_structured(c) and c.rounded > 0.0, **options
    )


def both(measure, kind=level, **options):
    """Return the question of structured and dense channels with structured and dense priors."""

    def ask(case):
        return [
            kind(name, measure(channel, prior), off + case.sums)
            for name, channel, prior, off in ways(case)
        ]

    return Quantity(ask, fits=lambda case: case.ordinary, **options)


def stacked(measure, kind=level, prior=False, **options):
    """Return the question of a stack of matrices and of a single one."""

    def ask(case):
        given = (case.pmf,) if prior else ()
        many = measure(case.stack, *given)
        return [kind("stack", many[0]), kind("single", measure(case.one, *given))]

    return Quantity(ask, **options)


def same(pairs):
    """Return spans that meet where every pair of answers is equal."""
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if not wrong:
        return []
    name, (first, second) = next(iter(wrong.items()))
    return [Span(f"{name} {first!r}", 0.0, 0.0), Span(f"not {second!r}", 1.0, 1.0)]


def near(value):
    value = float(value)
    return value * (1.0 - 1e-9) - 1e-14, value * (1.0 + 1e-9) + 1e-14
