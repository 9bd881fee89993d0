"""Numbers as they are: to 50 digits, or as Fractions."""

from fractions import Fraction

from mpmath import inf, libmp, log, mp, mpf

mp.dps = 50


def num(v):
    """Return v as an mpf (Fractions are divided at the working precision)."""
    return mpf(v.numerator) / v.denominator if isinstance(v, Fraction) else mpf(v)


def nums(rows):
    """Return a table in mpf, where no product is too small."""
    return [[num(v) for v in row] for row in rows]


def floats(rows):
    """Return a table in doubles, each the nearest."""
    return [[float(v) for v in row] for row in rows]


def exact(v):
    """Return v as a Fraction without any rounding."""
    return Fraction(*map(int, libmp.to_rational(v._mpf_))) if isinstance(v, mpf) else Fraction(v)


def normal(p):
    """Return p divided by its sum."""
    total = sum(map(num, p))
    return [num(v) / total for v in p]


def log_ratio(u, v):
    """Return ln(u/v) with positive/0 = inf; a zero u (0/0 too) gives -inf, so a max ignores it."""
    return -inf if u == 0 else inf if v == 0 else log(num(u) / num(v))
