"""Results: numbers between two proved bounds, what attains a level, and optimised mechanisms."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from itertools import groupby
from numbers import Real
from typing import TYPE_CHECKING, Any

from fastpriv._core import validation as check
from fastpriv._core.defined import headed, load, unheaded
from fastpriv._core.infinities import finite
from fastpriv._text import html
from fastpriv._text.numbers import down, up
from fastpriv._text.tabular import Tabular
from fastpriv.errors import InvalidInput, described

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats, Ints
    from fastpriv.channels import AbstractChannel

__all__ = [
    "Adversary",
    "Bracket",
    "Brackets",
    "IndividualCapacity",
    "SdpiConstant",
    "Solution",
    "Witness",
]


#: Significant digits of numbers in a repr; brackets are rounded outwards.
_DIGITS = 10
#: Longest database that JSON spells out.
_SPELT = 1 << 12
#: Most records and databases of an adversary that are written out.
_SHOWN = 8
#: Values of one database that are written out.
_LONG = 16
#: Probabilities of an adversary up to this one are the rounding of an optimisation.
_BELIEVED = 5e-7
#: Most brackets that a repr writes out.
_LISTED = 4
#: Precision and type at the end of a format.
_SPEC = re.compile(r"(?:\.(\d+))?([a-zA-Z%]?)$")


@dataclass(frozen=True, eq=False, repr=False)
class Bracket:
    """A value that is proved to lie in ``[lower, upper]``, usable as a number.

    ``float(bracket)`` is the guaranteed bound. For a level, a leakage or a capacity this is
    ``upper``: the mechanism leaks no more. For a quantity that protects, such as a remaining
    uncertainty or a balance, it is ``lower``. Comparisons with numbers and other brackets, and
    conversions in NumPy arrays, use that bound. Two brackets are equal if both bounds are; a
    bracket equals a number if both of its bounds do.

    Parameters
    ----------
    lower, upper : float
        The two bounds. NaN, other objects and a lower bound above the upper one are refused.
    guaranteed : {"upper", "lower"}
        Which of them is the guarantee.

    Examples
    --------
    >>> from fastpriv import Bracket
    >>> level = Bracket(0.5, 0.75)
    >>> level.width, float(level), level <= 0.75, 0.6 in level
    (0.25, 0.75, True, True)
    >>> round(level, 1), f"{level:.1f}", f"{level:i.1f}"  # the guarantee, or the interval
    (0.8, '0.8', '[0.5, 0.8]')
    >>> import numpy as np
    >>> np.array([level, Bracket(1.0, 1.0)])
    array([0.75, 1.  ])
    """

    lower: float
    upper: float
    guaranteed: str = field(default="upper", kw_only=True)

    def __post_init__(self) -> None:
        ends = (self.lower, self.upper)
        floats = type(self.lower) is float and type(self.upper) is float
        if floats and self.lower <= self.upper and self.guaranteed == "upper":
            return  # the usual case
        if not (all(map(_is_number, ends)) and self.lower <= self.upper):
            raise InvalidInput(
                "lower and upper must be two numbers, and lower at most upper; got "
                f"{described(self.lower)} and {described(self.upper)}. Pass the smaller one first."
            )
        if self.guaranteed not in ("lower", "upper"):
            raise InvalidInput(
                f'guaranteed must be "lower" or "upper"; got {described(self.guaranteed)}. '
                "Name the guaranteed bound."
            )

    @property
    def width(self) -> float:
        """How far apart the two bounds are; 0 for two equal infinities."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """Halfway between the two bounds; the value is within half a width of it."""
        return self.lower if self.lower == self.upper else 0.5 * (self.lower + self.upper)

    def __float__(self) -> float:
        return float(self.lower if self.guaranteed == "lower" else self.upper)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.array(float(self), dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Bracket):
            return self.lower == other.lower and self.upper == other.upper
        if isinstance(other, Real):
            return self.lower == other == self.upper
        return NotImplemented

    # Orders compare guaranteed bounds. They are written out since "<=" is not "< or ==" here.
    def __lt__(self, other: float | Bracket) -> bool:
        return float(self) < float(other) if isinstance(other, Bracket | Real) else NotImplemented

    def __le__(self, other: float | Bracket) -> bool:
        return float(self) <= float(other) if isinstance(other, Bracket | Real) else NotImplemented

    def __gt__(self, other: float | Bracket) -> bool:
        return float(self) > float(other) if isinstance(other, Bracket | Real) else NotImplemented

    def __ge__(self, other: float | Bracket) -> bool:
        return float(self) >= float(other) if isinstance(other, Bracket | Real) else NotImplemented

    def __hash__(self) -> int:
        # Equal to a number if both bounds are, so it must hash like one.
        return hash(self.lower) if self.lower == self.upper else hash((self.lower, self.upper))

    def __format__(self, spec: str) -> str:
        """Write the guaranteed bound, rounded to the safe side; with "i" in front both bounds.

        ``f"{b:.3f}"`` is one number, at least the upper bound of a level. ``f"{b:i.3f}"`` is the
        interval ``[lower, upper]``, rounded outwards. ``f"{b}"`` is the repr.
        """
        if not spec:
            return repr(self)
        if spec.startswith("i"):
            both = _formatted(self.lower, spec[1:], False), _formatted(self.upper, spec[1:], True)
            return f"[{', '.join(both)}]"
        return _formatted(float(self), spec, self.guaranteed == "upper")

    def __round__(self, digits: int | None = None) -> float:
        """Return the guaranteed bound as one number of so many decimals, on the safe side."""
        rounded = _rounded(float(self), digits or 0, self.guaranteed == "upper")
        return int(rounded) if digits is None and math.isfinite(rounded) else rounded

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @staticmethod
    def json_default(value: object) -> dict[str, Any]:
        """Return a bracket for ``json.dumps(..., default=Bracket.json_default)``: both bounds.

        An infinite bound is the word "infinite", since JSON has no such number.

        Examples
        --------
        >>> import json
        >>> import fastpriv as fp
        >>> json.dumps({"epsilon": fp.Bracket(0.25, 0.5)}, default=fp.Bracket.json_default)
        '{"epsilon": {"lower": 0.25, "upper": 0.5}}'
        """
        if isinstance(value, Bracket):
            return {name: finite(bound) for name, bound in value.to_dict().items()}
        raise TypeError(
            "a value must be numbers, texts, lists or mappings to be written as JSON; got "
            f"{described(value)}."
        )

    def to_dict(self) -> dict[str, float]:
        """Return the two bounds by name."""
        return {"lower": self.lower, "upper": self.upper}

    def to_json(self) -> str:
        """Return the bracket as JSON, which ``from_json`` reads. An adversary is left out."""
        return headed("result", "Bracket", self.to_dict() | {"guaranteed": self.guaranteed})

    @staticmethod
    def from_json(text: str | os.PathLike[str]) -> Bracket:
        """Return the bracket that ``to_json`` was called on: from its text, or the path of a file.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.Bracket.from_json(fp.Bracket(0.25, 0.5).to_json())
        Bracket(0.25, 0.5)
        """
        given = unheaded(text, "result", "Bracket")
        lower, upper = (_number(given, name) for name in ("lower", "upper"))
        if not lower <= upper or given.get("guaranteed") not in ("lower", "upper"):
            raise InvalidInput(
                "JSON of a bracket must have lower, upper that is not below it, and guaranteed, "
                f'"lower" or "upper"; got {described(dict(given))}.'
            )
        return Bracket(lower, upper, guaranteed=given["guaranteed"])

    def _repr_html_(self) -> str:
        rows = [("lower bound", down(self.lower)), ("upper bound", up(self.upper))]
        return html.listing(type(self).__name__, ("", "value"), rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({down(self.lower, _DIGITS)}, {up(self.upper, _DIGITS)})"


def _is_number(value: object) -> bool:
    """Whether this is a real number that fits a double."""
    try:
        return isinstance(value, Real) and float(value) == float(value)  # not a NaN
    except OverflowError:
        return False


def _rounded(value: float, digits: int, upwards: bool) -> float:
    """Return the nearest number of so many decimals that is not below, or not above, a value.

    A float stands for the decimal that it prints as: 0.1 has one decimal.
    """
    if not math.isfinite(value):
        return value
    mode = ROUND_CEILING if upwards else ROUND_FLOOR
    with localcontext() as context:
        context.prec = 1200  # of any double with its decimals
        exact = Decimal(repr(float(value)))
        return float(exact.quantize(Decimal(1).scaleb(-digits), rounding=mode))


def _formatted(value: float, spec: str, upwards: bool) -> str:
    """Format a number so that the text is not below, or not above, the value."""
    found = _SPEC.search(spec)
    assert found is not None  # it may be empty
    precision, kind = found[1], found[2].lower()
    if not math.isfinite(value) or value == 0.0 or (precision is None and not kind):
        return format(value, spec)  # as it is
    digits = 6 if precision is None else int(precision)
    first = Decimal(repr(float(value))).adjusted()  # place of the first digit
    decimals = {"f": digits, "%": digits + 2, "e": digits - first}
    return format(_rounded(value, decimals.get(kind, max(digits, 1) - 1 - first), upwards), spec)


@dataclass(frozen=True, eq=False, repr=False)
class Adversary:
    """The prior under which an output reveals most about one record or a group of records.

    Under this prior the database is ``databases[j]`` with probability ``law[j]``. Over all priors,
    the values of the group, ``databases[:, rows]``, are all different and determine the database.
    Over a set of priors, or with a minimum entropy, ``databases`` lists all that can occur.

    Attributes
    ----------
    rows : tuple of int
        The records of the group.
    databases : integer array of shape (values, n)
        Databases that can occur: one for each value of the group, or more over sets of priors.
    law : array
        Probability of each of them.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.individual_capacity(fp.HammingChannel(3, 2, 1.0)).adversary
    Adversary against record 0, who expects
      0 0 0  with probability 0.5
      1 1 1  with probability 0.5
    """

    rows: tuple[int, ...]
    databases: Ints
    law: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return the adversary as lists and words."""
        databases = [_spelt(database) for database in self.databases]
        return {"rows": list(self.rows), "databases": databases, "law": self.law.tolist()}

    def __repr__(self) -> str:
        more = ", ..." if len(self.rows) > _SHOWN else ""
        names = ", ".join(map(str, self.rows[:_SHOWN])) + more
        likeliest = (-self.law).argsort(kind="stable").tolist()
        order = [j for j in likeliest if self.law[j] > _BELIEVED]
        shown = [
            f"\n  {written(self.databases[j])}  with probability {self.law[j]:.6g}"
            for j in sorted(order[:_SHOWN])
        ]
        rest = f"\n  and {len(order) - _SHOWN} more" if len(order) > _SHOWN else ""
        many = "s" if len(self.rows) > 1 else ""
        return f"Adversary against record{many} {names}, who expects{''.join(shown)}{rest}"


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """What attains a level: an output, and the databases that it separates.

    Attributes
    ----------
    output : integer array
        The output, as a row of the channel's ``output_space``.
    database : integer array
        The database that the output points to most.
    other : integer array or None
        The database that it points away from, for levels that compare two.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.audit(fp.HammingChannel(3, 2, 1.0)).levels["dp"].worst
    output 0 0 0, from 0 0 0 against 1 0 0 (record 0)
    """

    output: Ints
    database: Ints
    other: Ints | None = None

    @property
    def row(self) -> int | None:
        """The record in which the two databases differ; None if they differ in several."""
        places = [] if self.other is None else (self.database != self.other).nonzero()[0].tolist()
        return places[0] if len(places) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as lists and words."""
        return {
            "output": _spelt(self.output),
            "database": _spelt(self.database),
            "other": None if self.other is None else _spelt(self.other),
            "row": self.row,
        }

    def __repr__(self) -> str:
        against = "" if self.other is None else f" against {written(self.other)}"
        place = "" if self.row is None else f" (record {self.row})"
        output, database = (written(v) for v in (self.output, self.database))
        return f"output {output}, from {database}{against}{place}"


def written(database: Ints) -> str:
    """Write a database in full while it is short, by runs of equal values, or its beginning."""
    values: list[int] = database.tolist()
    if len(values) <= _LONG:
        return " ".join(map(str, values))
    runs = [(value, len(list(same))) for value, same in groupby(values)]
    if len(runs) <= _LONG // 2:
        return " ".join(
            f"{value} ({count} times)" if count > 1 else str(value) for value, count in runs
        )
    return " ".join(map(str, values[:_LONG])) + " ..."


def _spelt(database: Ints) -> list[int] | str:
    """Return a database as a list if it is short enough, else in words."""
    values: list[int] = database.tolist()
    return values if len(values) <= _SPELT else written(database)


#: A float that is known, a yes or no, a count, or a number between two bounds.
Value = float | Bracket
#: What attains a level.
Worst = Witness | Adversary


def top(value: Value) -> float:
    """Return the number itself, or the upper bound of a bracket."""
    return value.upper if isinstance(value, Bracket) else value


@dataclass(frozen=True, eq=False, repr=False)
class IndividualCapacity(Bracket):
    """The capacity about one record (or a group), and the adversary who attains it.

    A :class:`Bracket` whose lower bound is the information that ``adversary`` gets. It is None if
    the adversary's list of databases would be too long.

    Examples
    --------
    >>> import fastpriv as fp
    >>> capacity = fp.individual_capacity(fp.Channel([[0.9, 0.1], [0.1, 0.9]]))
    >>> capacity
    IndividualCapacity(0.3680642071, 0.3680642072)
    >>> capacity.adversary.databases.tolist(), capacity.adversary.law.tolist()
    ([[0], [1]], [0.5, 0.5])
    """

    adversary: Adversary | None


@dataclass(frozen=True, eq=False, repr=False)
class SdpiConstant(Bracket):
    """The strong data-processing constant, and a distribution that attains its lower bound.

    A :class:`Bracket` whose lower bound is D(rW || pW)/D(r || p) for r = ``law``, or the squared
    maximal correlation, which distributions near the prior approach; ``law`` is then one of these.
    It is None if the channel was not taken as a matrix. Let a secret S be 1 with a small
    probability, and the database have distribution ``law`` given S = 1: then I(S; Y)/I(S; X) is
    about this number.

    Examples
    --------
    >>> import fastpriv as fp
    >>> constant = fp.sdpi_constant([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5])
    >>> constant.law.tolist()
    [1.0, 0.0]
    """

    law: Floats | None


@dataclass(frozen=True, eq=False, repr=False)
class Brackets:
    """Many values, the b-th proved to lie in ``[lower[b], upper[b]]``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> many = fp.channel_capacity([[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> many, many[1]
    (Brackets([0.6931471805, 0.6931471806], [0, 0]), Bracket(0, 0))
    """

    lower: Floats
    upper: Floats

    @property
    def width(self) -> Floats:
        """How far apart the two bounds of each value are."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> Floats:
        """Halfway between the two bounds of each value."""
        return 0.5 * (self.lower + self.upper)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, b: int) -> Bracket:
        return Bracket(float(self.lower[b]), float(self.upper[b]))

    def __repr__(self) -> str:
        if len(self) > _LISTED:
            return f"Brackets({len(self)} values)"
        pairs = (
            f"[{down(float(low), _DIGITS)}, {up(float(high), _DIGITS)}]"
            for low, high in zip(self.lower, self.upper, strict=True)
        )
        return f"Brackets({', '.join(pairs)})"


def _number(given: Mapping[str, Any], name: str) -> float:
    """Read a number of JSON, which may be infinite."""
    value = given.get(name)
    return value if value in (math.inf, -math.inf) else check.real(value, name)


@dataclass(frozen=True)
class Solution(Tabular):
    """An optimised mechanism with its certificate.

    Attributes
    ----------
    value : float
        The minimised quantity of the returned channel itself.
    bound : float
        Proved lower bound for every mechanism; ``value`` is optimal within the gap.
    channel : channel
        The mechanism. The returned matrix satisfies the constraint exactly.
    level : float
        Certified privacy level of that channel.
    method : {"closed-form", "rows", "types", "dense"}
        How it was found.
    solver : {"interior", "highs"} or None
        The solver of the linear program; None if there was none to solve.
    converged : bool
        Whether the requested gap is met.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.solve_pd_dp(fp.Uniform(3, 2), 1.0)
    Solution(value=0.8068242642, bound=0.8068242641, level=1, method='closed-form')
    """

    value: float
    bound: float
    channel: AbstractChannel
    level: float
    method: str
    solver: str | None = field(default=None, kw_only=True)
    converged: bool = field(default=True, kw_only=True)

    @property
    def gap(self) -> float:
        """Certified relative distance from the optimum."""
        if self.value == self.bound:
            return 0.0
        return (self.value - self.bound) / abs(self.value) if self.value else math.inf

    def columns_of_table(self) -> dict[str, list[Any]]:
        """Return the numbers as one row, without the channel."""
        names = ("value", "bound", "gap", "level", "method", "solver", "converged")
        return {name: [getattr(self, name)] for name in names}

    def to_json(self) -> str:
        """Return the numbers and the channel as JSON; ``from_json`` reads it."""
        names = ("value", "bound", "level", "method", "solver", "converged")
        fields = {name: getattr(self, name) for name in names}
        return headed("result", "Solution", fields | {"channel": self.channel.to_dict()})

    @staticmethod
    def from_json(text: str | os.PathLike[str]) -> Solution:
        """Return the solution that ``to_json`` was called on: from its text, or a file's path.

        The certificate is read, not proved again.

        Examples
        --------
        >>> import fastpriv as fp
        >>> solution = fp.solve_pd_dp(fp.Uniform(3, 2), 1.0)
        >>> fp.Solution.from_json(solution.to_json()) == solution
        True
        """
        given = unheaded(text, "result", "Solution")
        value, bound, level = (_number(given, name) for name in ("value", "bound", "level"))
        solver, converged = given.get("solver"), given.get("converged", True)
        return Solution(
            value,
            bound,
            load(given.get("channel", {})),
            level,
            str(given.get("method")),
            solver=None if solver is None else str(solver),
            converged=bool(converged),
        )

    def __repr__(self) -> str:
        engine = "" if self.solver is None else f", solver={self.solver!r}"
        short = "" if self.converged else ", converged=False"
        return (
            f"Solution(value={up(self.value, _DIGITS)}, bound={down(self.bound, _DIGITS)}, "
            f"level={up(self.level, _DIGITS)}, method={self.method!r}{engine}{short})"
        )
