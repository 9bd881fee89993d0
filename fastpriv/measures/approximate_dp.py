"""Approximate differential privacy: how much probability breaks the ratio e^epsilon."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_channel

__all__ = ["hockey_stick", "hockey_stick_epsilon"]


@overload
def hockey_stick(channel: AbstractChannel | ArrayLike, epsilon: float) -> float: ...
@overload
def hockey_stick(channel: AbstractChannel | ArrayLike, epsilon: ArrayLike) -> float | Floats: ...


def hockey_stick(
    channel: AbstractChannel | ArrayLike, epsilon: float | ArrayLike
) -> float | Floats:
    """Least delta for which a mechanism is (epsilon, delta)-differentially private.

    delta(epsilon) = max over neighbours x, x' of sum_y (p(y|x) - e^epsilon p(y|x'))_+, the
    hockey-stick divergence (Makhdoumi-Fawaz 2013, Definition 7, last item).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A plain matrix is one row with as many values as it has rows.
    epsilon : float or array
        Levels of at least 0, in nats.

    Returns
    -------
    float or ndarray
        Delta in [0, 1] for each epsilon, rounded up; 0 from ``dp_level(channel)`` on.

    Notes
    -----
    Cost per epsilon: closed form for E_d; O(m^2 K) per distinct row for channels that act row by
    row, since the factors of the rows that two neighbours share sum to one; one O(K) look per
    pair of answers for a query; O(N n (m-1) K) through the matrix otherwise.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.75, 0.25], [0.25, 0.75]]
    >>> fp.hockey_stick(channel, [0.0, 0.5, fp.dp_level(channel)]).round(6)
    array([0.5    , 0.33782, 0.     ])
    >>> round(fp.hockey_stick(fp.HammingChannel(1_000_000, 2, 1.0), 0.5), 6)
    0.287649
    """
    given = check.array(epsilon, "epsilon")
    epsilons = check.floats(given.reshape(-1), "epsilon", 1)
    mechanism = as_channel(channel)
    found = np.minimum(mechanism.excess(epsilons), 1.0)
    found[epsilons >= mechanism.neighbour_level()] = 0.0
    return float(found[0]) if given.ndim == 0 else found.reshape(given.shape)


def hockey_stick_epsilon(channel: AbstractChannel | ArrayLike, delta: float) -> float:
    """Least epsilon for which a mechanism is (epsilon, delta)-differentially private.

    The inverse of :func:`hockey_stick`. The curve of every pair of neighbours is piecewise linear
    in e^epsilon, so the crossing is found exactly, piece by piece.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    delta : float
        In [0, 1]; 0 asks for the differential privacy level.

    Returns
    -------
    float
        Epsilon >= 0 in nats, rounded up. Infinite when some database gives more than ``delta`` to
        outputs that are impossible for a neighbour. Cost as for one epsilon of
        :func:`hockey_stick`, and a few more looks at the pairs that set the result.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    >>> fp.hockey_stick_epsilon(channel, 0.25), fp.hockey_stick_epsilon(channel, 0.2)
    (0.0, inf)
    >>> round(fp.hockey_stick_epsilon([[0.75, 0.25], [0.25, 0.75]], 0.33782), 4)
    0.5
    """
    target = check.real(delta, "delta", least=0.0, most=1.0)
    mechanism = as_channel(channel)
    level = mechanism.neighbour_level()
    return min(level, mechanism.excess_crossing(target)) if target > 0.0 else level
