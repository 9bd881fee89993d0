"""Draws from a law that is tilted towards a database, in the structure of the law."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv._sampling.sequential import States, chain_draws
from fastpriv._sampling.source import Source
from fastpriv.priors import Distribution, Exchangeable, Markov

#: Largest law that is drawn from by sums over its prefixes.
_MAX_DRAWN = 1 << 25


@singledispatch
def tilted_draws(law: Distribution, rows: Ints, epsilon: float, source: Source) -> Ints:
    """Draw y with chance proportional to q(y) e^(-epsilon d(x, y)) for each database x.

    Cost O(N) for every distinct x and O(n m) for each draw.
    """
    vector = law.as_dense("sampling a tilted law", _MAX_DRAWN).probabilities()
    return States.dense(vector, law.space.sizes).draws(rows, epsilon, source)


@tilted_draws.register
def _exchangeable_tilted_draws(
    law: Exchangeable, rows: Ints, epsilon: float, source: Source
) -> Ints:
    """Exchangeable rows, taken in the order of their values.

    Databases of one type then share the sums over what can follow: O(n^2) for each type for
    m = 2, O(n m) for each draw.
    """
    n, m = law.space.n, law.type_weights.ndim + 1
    check.fits(n * law.type_weights.size, "the table of types", "use fewer rows", 1 << 27)
    states = States.types(law.log_per_database, law.strides(m))
    order = np.argsort(rows, axis=1, kind="stable")
    drawn = states.draws(np.take_along_axis(rows, order, axis=1), epsilon, source)
    out = np.empty_like(drawn)
    np.put_along_axis(out, order, drawn, axis=1)
    return out


@tilted_draws.register
def _markov_tilted_draws(law: Markov, rows: Ints, epsilon: float, source: Source) -> Ints:
    """Chain: backward sums, then one row after the other. Cost O(n m^2) each."""
    return chain_draws(law.initial, law.transition, rows, epsilon, source)
