"""The parts of an audit's sentences: factors, amounts of information, shares and worst cases."""

from __future__ import annotations

import math
from decimal import Decimal

from fastpriv._text.numbers import down, quantity, up
from fastpriv.results import Adversary, Bracket, Value, Worst, top, written

#: Digits of a number within a sentence, and of a number that was converted for it: a level is
#: rounded up by a few ulp, so that further digits of e^level or of bits are rounding.
DIGITS, _CONVERTED = 4, 13
#: Levels whose exponential is still a number that people read.
_READ = 14.0
#: Probabilities below are the rounding of an optimisation.
_BELIEVED = 1e-6


def converted(number: float, digits: int = DIGITS) -> str:
    """Write the result of a conversion, rounded up after its own rounding errors are dropped."""
    return up(float(f"{number:.{_CONVERTED}g}"), digits)


def factor(level: float) -> str:
    """Write e^level, rounded up, the way people read factors."""
    if level == 0.0:
        return "1"
    if level < 1e-4:
        return f"1 + {converted(math.expm1(level))}"
    digits = DIGITS - min(0, math.floor(math.log10(level)) + 1)  # four of what exceeds 1
    return converted(math.exp(level), digits) if level <= _READ else f"e^{up(level, DIGITS)}"


def nats(value: Value) -> str:
    """Write an amount of information in nats and bits, or the two bounds of one."""
    number = up(top(value), DIGITS)
    if number == "infinite":
        return number
    bits = quantity(converted(top(value) / math.log(2.0)), "bits")
    if isinstance(value, Bracket) and value.width > 1e-3 * value.upper:
        bits += f"; {quantity(down(value.lower, DIGITS), 'nats')} can be attained"
    return f"{quantity(number, 'nats')} ({bits})"


def percent(share: float) -> str:
    """Write a share as a percentage, rounded up."""
    return f"{up(float(Decimal(repr(float(share))).scaleb(2)), DIGITS)} %"


def where(worst: Worst, level: float, what: str = "") -> str:
    """Say in one sentence what attains a level; ``what`` names what the output tells about."""
    if isinstance(worst, Adversary):
        return _adversary(worst)
    output, x = written(worst.output), what + written(worst.database)
    if worst.other is None:
        return f"Output {output}, which speaks most for {x}."
    apart = "" if worst.row is None else f", which differ in row {worst.row}"
    other = written(worst.other)
    if level == math.inf:
        return f"Output {output} leaves {x} possible and rules out {other}{apart}."
    return f"Output {output}, for {x} against {other}{apart}."


def _adversary(worst: Adversary) -> str:
    """Write an adversary's beliefs, the likeliest databases first."""
    order = (-worst.law).argsort(kind="stable").tolist()
    beliefs = [
        f"{written(worst.databases[j])} ({worst.law[j]:.3g})"
        for j in order[:4]
        if worst.law[j] > _BELIEVED
    ]
    rest = " or others" if (worst.law > _BELIEVED).sum() > 4 else ""
    rows = ", ".join(map(str, worst.rows[:8]))
    return f"Row {rows}, to an adversary who expects {' or '.join(beliefs)}{rest}."
