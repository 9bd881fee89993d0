"""The binary symmetric privacy channel: the answer to a yes/no query, sometimes flipped."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import least_float
from fastpriv.channels import QueryChannel
from fastpriv.spaces import Space

__all__ = ["binary_symmetric", "binary_symmetric_flip"]

#: Capacities down to (2^-53)^2 are compared, so 80 digits leave more than 40.
_DIGITS = Context(prec=80)
#: The probability 1 - p beside a small p is rounded, which acts like a relative change of p below
#: this.
_ROUNDED = 1 - Decimal(2) ** -52


def binary_symmetric(values: ArrayLike, p: float, space: Space | ArrayLike) -> QueryChannel:
    """Answer a yes/no query and flip the answer with probability p.

    p(y|x) = 1 - p if y = f(x), p otherwise (Wu-Xia-He 2020, Section 4.1, eq. (49)). For one row of
    two values it is randomised response. Its individual channel capacity is at most ln 2 - H(p)
    (Corollary 3). Equality holds exactly if some record has two values that can have different
    answers (the paper leaves records of three values or more open).

    Parameters
    ----------
    values : array of N zeros and ones
        The query's answer f(x) for every database, in C order.
    p : float
        Probability that the answer is flipped, 0 to 1.
    space : Space or sequence of int
        The databases.

    Returns
    -------
    QueryChannel
        Two answers in, two outputs out.

    Examples
    --------
    >>> import fastpriv as fp
    >>> equal = [1, 0, 0, 1, 0, 0]  # is x_1 = x_2, for x_1 in {0, 1, 2} and x_2 in {0, 1}?
    >>> channel = fp.mechanisms.binary_symmetric(equal, 0.25, [3, 2])
    >>> round(fp.dp_level(channel), 6)  # ln 3
    1.098612
    """
    p = check.real(p, "p", least=0.0, most=1.0)
    return QueryChannel(values, [[1.0 - p, p], [p, 1.0 - p]], space)


def binary_symmetric_flip(epsilon: float) -> float:
    """Return the smallest flip probability at which a yes/no answer leaks at most epsilon nats.

    The p in [0, 1/2] with ln 2 - H(p) = epsilon (Wu-Xia-He 2020, Corollary 3, eq. (57)).

    Parameters
    ----------
    epsilon : float
        Bound on the individual channel capacity in nats, at least 0. From ln 2 on, p is 0.

    Returns
    -------
    float
        p rounded up: ln 2 - H(p) <= epsilon holds for the float returned, and for the two floats
        1 - p and p that :func:`binary_symmetric` keeps.

    Notes
    -----
    Bisection over floats, each compared in 80 digits. The float nearest to ln 2, ``math.log(2)``,
    is less than ln 2 and gives 6e-19 instead of 0. Below about 2e-32 p is 1/2.

    Examples
    --------
    >>> import fastpriv as fp
    >>> p = fp.mechanisms.binary_symmetric_flip(0.1)
    >>> round(p, 6), round(fp.channel_capacity([[1 - p, p], [p, 1 - p]]).midpoint, 12)
    (0.280205, 0.1)
    >>> fp.mechanisms.binary_symmetric_flip(0.7)
    0.0
    """
    epsilon = check.real(epsilon, "epsilon", least=0.0)
    with localcontext(_DIGITS):
        bound, most = Decimal(epsilon), Decimal(2).ln()
        if bound >= most:
            return 0.0

        def enough(p: float) -> bool:
            flip = Decimal(p) * (_ROUNDED if p < 0.25 else 1)
            stay = 1 - flip
            return most + flip * flip.ln() + stay * stay.ln() <= bound

        p = least_float(enough, 0.0, 0.5)
        if p < 0.25:
            return p
        # Next to 1/2, take a p whose 1 - p is a float as well.
        stay = 1.0 - p
        if Decimal(stay) > 1 - Decimal(p):
            stay = math.nextafter(stay, 0.0)
        return 1.0 - stay
