"""Priors as commands take them: a file, or a name with parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv.cli import arrays, specs
from fastpriv.errors import InvalidInput, short

if TYPE_CHECKING:
    from fastpriv.cli.specs import Floats, Ints
    from fastpriv.priors import Distribution
    from fastpriv.spaces import Space


def uniform(n: int, m: Ints) -> Distribution:
    """All databases are equally likely: n rows of m values each (or m=2,3,... one for each)."""
    from fastpriv.priors import Uniform

    return Uniform(n, m if len(m) > 1 else m[0])


def iid(p: Floats, n: int) -> Distribution:
    """Rows are independent, each with law p."""
    from fastpriv.priors import Product

    return Product.iid(p, n)


def beta_binomial(a: float, b: float, n: int) -> Distribution:
    """Rows are bits, independent given a common chance of 1 that is Beta(a, b)."""
    from fastpriv.priors import Exchangeable

    return Exchangeable.beta_binomial(n, a, b)


def markov(initial: Floats, transition: Floats, n: int) -> Distribution:
    """Rows form a chain; transition lists P(next | this), one this after the other."""
    from fastpriv.priors import Markov

    m = len(initial)
    if len(transition) != m * m:
        raise InvalidInput(
            f"markov with {m} values needs {m * m} transition chances, got {len(transition)}"
        )
    return Markov(initial, [transition[i : i + m] for i in range(0, m * m, m)], n)


MAKERS: specs.Makers = {
    "uniform": uniform,
    "iid": iid,
    "beta-binomial": beta_binomial,
    "markov": markov,
}

FILES = """\
  FILE.csv or FILE.npy
      One line (or one column): the probability of every database, the last row changing fastest.
      Several lines: the law of each row, which are independent."""


def load(text: str, space: Space | None) -> Distribution:
    """Return the prior; what it leaves open is taken from the mechanism's space, where known."""
    if arrays.is_file(text):
        return _from_file(text, space)
    known = {} if space is None else {"n": space.n, "m": list(space.sizes)}
    prior: Distribution = specs.make(text, MAKERS, "prior", known)
    return prior


def _from_file(path: str, space: Space | None) -> Distribution:
    table = arrays.read(path, "the prior")
    from fastpriv.priors import Dense, Product

    if 1 not in table.shape:
        with arrays.told(path):
            return Product(list(table))
    law = table.reshape(-1)
    if space is not None and space.size != len(law):
        hint = ""
        if space.n > 1 and space.m == len(law):
            words = ",".join(map(repr, law.tolist()))
            hint = f"; for independent rows of this law write iid:p={words}"
        raise InvalidInput(
            f"the prior {path} has {len(law)} probabilities, but there are {short(space.size)} "
            f"databases{hint}"
        )
    with arrays.told(path):
        return Dense(law, None if space is None else space.sizes)
