"""Ratios of chances between neighbours that mechanisms with tilted laws have."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, raised, round_up
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_error
from fastpriv._structure.leakage import log_slack, row_slack
from fastpriv._structure.rows import Symmetric
from fastpriv.channels import TiltedChannel
from fastpriv.priors import Dense, Distribution, Uniform
from fastpriv.spaces import Space


def home_ratios(channel: TiltedChannel, i: int, prior: Distribution | None = None) -> Floats:
    """Largest ln v(x)/v(x') for v = R q, or for v = p/(R q), over neighbours in row i, and more.

    The entry (s, t) is for databases whose row i is s and t. With w the law q through all rows but
    i, v is b sum_t w(t) + (a - b) w(s): ratios come from differences of w, before these cancel.
    """
    space, kernel = channel.space, channel.kernels[i]
    assert isinstance(kernel, Symmetric)
    steps = [k.mixing if isinstance(k, Symmetric) else 0.0 for k in channel.kernels]
    mixed = mix(
        channel.base.probabilities().copy(), space.sizes, [*steps[:i], 0.0, *steps[i + 1 :]]
    )
    lines, units = _lines(mixed, space, i), (12 * space.n + 32) * ULP
    home = kernel.off * lines.sum(axis=1, keepdims=True) + kernel.gap * lines
    odds = None if prior is None else _lines(prior.probabilities(), space, i)
    ratios = np.full((kernel.m, kernel.m), -math.inf)
    for s, t in itertools.product(range(kernel.m), repeat=2):
        apart = kernel.gap * (lines[:, s] - lines[:, t]) / home[:, t]
        near = np.abs(apart) < 0.5
        logs = np.where(near, np.log1p(np.where(near, apart, 0.0)), log_ratio(*home[:, [s, t]].T))
        # Entries of w are off by units of themselves, sums by a few more, and so are logarithms of
        # ratios that are not near one.
        doubt = np.where(
            near,
            units * kernel.gap * (lines[:, s] + lines[:, t]) / home[:, t],
            2.0 * units + 4.0 * (kernel.m + 2) * ULP,
        )
        doubt += 8.0 * ULP * np.abs(logs)
        if odds is not None:
            seen = odds[:, s] > 0.0
            given = log_ratio(odds[seen, s], odds[seen, t])
            logs, doubt = given - logs[seen], doubt[seen] + 8.0 * ULP * np.abs(given)
        ratios[s, t] = (logs + doubt).max(initial=-math.inf)
    return ratios if prior is None else ratios + products_error(prior)


def all_ratios(channel: TiltedChannel, rows: Ints, prior: Distribution) -> Floats:
    """The largest of them over rows: the channel treats them alike, another prior may not."""
    return np.asarray(np.max([home_ratios(channel, int(i), prior) for i in rows], axis=0))


def _lines(vector: Floats, space: Space, i: int) -> Floats:
    """Return a vector over databases with one line per setting of the rows but i."""
    m, inner = space.sizes[i], int(space.strides[i])
    return vector.reshape(-1, m, inner).swapaxes(1, 2).reshape(-1, m)


def live_level(
    channel: TiltedChannel, ratios: list[Floats], prior: Distribution | None = None
) -> float:
    """Return the largest e ([y_i = s] - [y_i = t]) + ratio[s, t] over rows, values and outputs.

    When row i of x moves from s to t, R[x, y] changes by e^(epsilon ([y_i = s] - [y_i = t])). A
    value s that never comes out therefore never gives the full e^epsilon. Where only one value
    does, the output says nothing about the row, and the prior's own ratios are left.
    """
    worst = [0.0]
    for rows, alive, ratio in zip(
        channel.alike_groups, channel.occurring_values, ratios, strict=True
    ):
        if alive.sum() == 1:
            worst += [] if prior is None else [float(prior.log_ratios(rows).max())]
            continue
        elsewhere = alive.sum() - alive[:, None] - alive[None, :] > 0
        gain = np.where(alive[:, None], 1.0, np.where(elsewhere, 0.0, -1.0))
        np.fill_diagonal(gain, 0.0)
        worst.append(float(log_sum(channel.epsilon * gain, ratio).max()))
    return round_up(max(worst))


def products_error(prior: Distribution) -> float:
    """Bound the error of a log-ratio of probabilities that were multiplied along the rows."""
    listed = isinstance(prior, Dense | Uniform) or prior.space.n == 1
    return 0.0 if listed else 4.0 * (prior.space.n + 1) * ULP


def home_error(channel: TiltedChannel, tilt: Floats | None = None) -> float:
    """Bound the error of ln (R q)(x)/(R q)(x') from R q itself, or from its logarithms.

    Entries of R q, and thus their logarithms, are off by ``row_slack`` each. Logarithms that are
    added up instead have a relative error, and their difference has lost what they share.
    """
    error = 2.0 * row_slack(channel.kernels)
    return error if tilt is None else error + log_error(tilt, 2.0 * log_slack(channel.kernels))


def log_sum(first: Floats, second: Floats) -> Floats:
    """Bound the sum of two logarithms, which may cancel: each is raised past its own error."""
    return np.asarray(raised(first, 12.0) + raised(second, 12.0))
