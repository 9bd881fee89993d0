"""Releases of which only a level is known, and names that both declare a level and ask for it.

``PrivacyProfile.zcdp(0.5)`` makes a profile, ``profile.zcdp()`` asks for its level: the same number
seen from both sides. :class:`Named` gives a class the one and its instances the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.relations import ADDED, as_relation
from fastpriv.accounting.profile.renyi import Moments
from fastpriv.errors import InvalidInput

_Made = ParamSpec("_Made")
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
_Owner = TypeVar("_Owner")


class Named(Generic[_Made, _Asked, _Answer]):
    """A constructor on the class, and a question on its instances, under one name.

    Parameters
    ----------
    make : callable
        Takes the class and what is declared.
    ask : callable
        Takes an instance and what is asked.
    """

    def __init__(
        self,
        make: Callable[Concatenate[Any, _Made], Any],
        ask: Callable[Concatenate[Any, _Asked], _Answer],
    ) -> None:
        self._make, self._ask = make, ask
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[_Owner]) -> Callable[_Made, _Owner]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[_Asked, _Answer]: ...
    def __get__(self, instance: object, owner: Any = None) -> Any:
        if instance is None:
            return MethodType(self._make, owner)
        return MethodType(self._ask, instance)


def zcdp(cls: Any, rho: float, xi: float = 0.0, *, relation: str = ADDED) -> Any:
    """Profile of any (xi, rho)-zCDP mechanism: bounds from above only.

    Composed with others, all are bounded by their Renyi divergences; the lower end is what the
    others attain. Asked of a profile, ``profile.zcdp()`` is its least rho, ``zcdp_level``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.PrivacyProfile.zcdp(0.5).epsilon(1e-6).upper < 5.76
    True
    >>> 0.125 in fp.accounting.PrivacyProfile.gaussian(2.0).zcdp()
    True
    """
    level = check.real(rho, "rho", least=0.0)
    extra = check.real(xi, "xi", least=0.0)
    part = Moments((), (), level, extra)
    return cls({} if part.is_trivial else {part: 1}, as_relation(relation))


def renyi(cls: Any, orders: ArrayLike, levels: ArrayLike, *, relation: str = ADDED) -> Any:
    """Profile of any mechanism with given Renyi divergences: bounds from above only.

    Asked of a profile, ``profile.renyi(order)`` is its level at an order, ``renyi_level``.

    Parameters
    ----------
    orders, levels : arrays
        Orders above 1, rising, and the levels at them.
    relation : {"add-or-remove", "replace-one", "replace-special"}
        Which databases are neighbours.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.renyi([2.0, 8.0, 32.0], [1.0, 4.0, 16.0])
    >>> profile.epsilon(1e-5).lower
    0.0
    >>> round(profile.renyi(8.0).upper, 9)
    4.0
    """
    at, values = check.floats(orders, "orders", 1), check.floats(levels, "levels", 1)
    if len(at) != len(values) or not len(at):
        raise InvalidInput("renyi needs a level for each order, and at least one")
    if not (np.all(at > 1.0) and np.all(np.diff(at) > 0.0) and np.all(at < math.inf)):
        raise InvalidInput("orders must be above 1, finite and rising")
    if not np.all((values >= 0.0) & (values < math.inf)):
        raise InvalidInput("levels must be finite numbers of at least 0")
    part = Moments(tuple(at.tolist()), tuple(values.tolist()), 0.0, 0.0)
    return cls({part: 1}, as_relation(relation))


def gdp(cls: Any, mu: float, *, relation: str = ADDED) -> Any:
    """Profile of any mu-GDP mechanism: that of N(0, 1) against N(mu, 1), which is the worst.

    Asked of a profile, ``profile.gdp()`` is its least mu, ``gdp_level``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.gdp(0.5)
    >>> 0.5 in profile.gdp(), profile.self_compose(4).epsilon(1e-5)
    (True, Bracket(4.377178095, 4.377178096))
    """
    level = check.real(mu, "mu", least=0.0)
    if level != 0.0 and not 1e-15 <= level <= 1e6:
        raise InvalidInput(f"mu must be 0 or between 1e-15 and 1e6, got {level:g}")
    return cls({} if level == 0.0 else {Normal(1.0 / level): 1}, as_relation(relation))
