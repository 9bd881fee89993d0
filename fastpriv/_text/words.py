"""Numbers, databases and worst cases in words."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from fastpriv.errors import short
from fastpriv.results import Adversary, Bracket, Witness
from fastpriv.results import written as written

#: A float that is known, a yes or no, a count, or a number between two bounds.
Value = float | Bracket
Worst = Witness | Adversary

#: Digits that are shown, and digits from which on a difference is the rounding of a level.
_SHOWN, _MEANT = 6, 9
#: Levels whose exponential is still a number people read.
_READ = 14.0
#: Beliefs below are the rounding of an optimisation.
_BELIEVED = 1e-6


def top(value: Value) -> float:
    """Return the number that is guaranteed."""
    return value.upper if isinstance(value, Bracket) else value


def rounded(number: float, digits: int = _SHOWN, *, down: bool = False) -> str:
    """Write a number in a few digits, rounded up, or down; the tenth digit counts as rounding."""
    if not math.isfinite(number):
        return "infinite"
    if number == 0.0:
        return "0"
    meant = Context(prec=_MEANT).create_decimal(Decimal(number))
    direction = ROUND_FLOOR if down else ROUND_CEILING
    found = Context(prec=digits, rounding=direction).plus(meant).normalize()
    return f"{found:,f}" if 1e-4 <= abs(found) < 10**9 else f"{float(found):.{digits}g}"


def shown(value: Value, *, down: bool = False) -> str:
    """Write a value as a table shows it; ``down`` for one that is guaranteed from below."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return short(value)
    if isinstance(value, Bracket):
        low, high = rounded(value.lower, down=True), rounded(value.upper)
        return high if low == high else f"[{low}, {high}]"
    return rounded(value, down=down)


def factor(level: float) -> str:
    """Write e^level, rounded up, the way people read factors."""
    if level == 0.0:
        return "1"
    if level < 1e-4:
        return f"1 + {rounded(math.expm1(level), 4)}"
    digits = 4 - min(0, math.floor(math.log10(level)) + 1)  # four of what exceeds 1
    return rounded(math.exp(level), digits) if level <= _READ else f"e^{rounded(level, 4)}"


def nats(value: Value) -> str:
    """Write an amount of information in nats and bits, or the two bounds of one."""
    bits = f"{rounded(top(value) / math.log(2.0), 4)} bits"
    if isinstance(value, Bracket) and value.width > 1e-3 * value.upper:
        bits += f"; {rounded(value.lower, 4, down=True)} nats are known to be possible"
    return f"{rounded(top(value), 4)} nats ({bits})"


def percent(share: float) -> str:
    """Write a share as a percentage, rounded up."""
    return f"{rounded(100.0 * share, 4)} %"


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
