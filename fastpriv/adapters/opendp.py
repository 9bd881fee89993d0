"""A channel as an OpenDP measurement; needs ``pip install 'fastpriv[opendp]'``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core.extras import optional
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.realised import drawn_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastpriv.channels import AbstractChannel

__all__ = ["make_channel"]


def make_channel(channel: AbstractChannel | ArrayLike) -> Any:
    """Return a channel as a measurement that OpenDP's combinators compose.

    From vectors of n integers, row i in 0 .. m_i - 1, under the Hamming distance (neighbours
    differ in one row), to outputs drawn by ``channel.sample`` with the operating system's entropy,
    under the max-divergence. Where rows have different sizes, a value that is too large for its
    row counts as the largest one.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    opendp.Measurement
        Its privacy map sends d changed rows to d times the DP level of the probabilities that are
        drawn, rounded up (group privacy). Its outputs are lists of row values where outputs are
        databases, and integers otherwise. OpenDP takes our word for the map, so its features
        "contrib" and "honest-but-curious" must be enabled.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import fastpriv as fp
    >>> from fastpriv.adapters.opendp import make_channel
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> survey = make_channel(fp.HammingChannel(4, 3, 0.5))
    >>> both = dp.c.make_composition([survey, survey])
    >>> first, second = both([0, 1, 2, 0])
    >>> len(first), round(both.map(1), 9)
    (4, 1.0)
    """
    dp = optional("opendp.prelude", "opendp")
    mechanism = as_channel(channel)
    level, sizes = drawn_level(mechanism), np.array(mechanism.space.sizes)

    def release(rows: list[int]) -> Any:
        database = np.asarray(rows).reshape(1, len(sizes))  # or an error: no broadcasting
        return mechanism.sample(np.minimum(database, sizes - 1))[0].tolist()

    def privacy_map(changed: int) -> float:
        together = min(changed, len(sizes))
        if together < 2:
            return level if together else 0.0
        return math.nextafter(level * together, math.inf)

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(bounds=(0, int(sizes.max()) - 1), T=int), size=len(sizes)),
        dp.hamming_distance(),
        dp.max_divergence(),
        release,
        privacy_map,
    )
