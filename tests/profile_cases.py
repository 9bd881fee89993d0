"""Channels and checks that the tests of privacy profiles share."""

import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
from cases import once
from fastpriv.accounting import PrivacyProfile

response = PrivacyProfile.randomised_response


def holds(bracket, truth, width=None):
    """The bracket contains the truth and is at most so wide, relatively."""
    assert mpf(bracket.lower) <= truth <= mpf(bracket.upper), (bracket, truth)
    if width is not None:
        assert bracket.upper - bracket.lower <= width * bracket.upper, (bracket, truth)


def random_channel(seed, rows=3, outputs=4):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), rows)


def structured():
    space = fp.Space.hamming(3, 2)
    count = space.rows(np.arange(8)).sum(axis=1)
    kernel = np.random.default_rng(1).dirichlet(np.ones(4), 4)
    types = fp.Exchangeable.beta_binomial(3, 0.5, 0.8)
    return {
        "query": lambda: fp.QueryChannel(count, kernel, space),
        "product": lambda: fp.ProductChannel([random_channel(1), random_channel(2, 2, 3)]),
        "tilted": lambda: fp.TiltedChannel(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 1.0),
        "posterior": lambda: fp.PosteriorChannel(fp.Product([[0.6, 0.4], [0.3, 0.7]]), 1.0),
        "E_d": lambda: fp.HammingChannel(5, 3, 0.5),
        "types": lambda: fp.solve_pd_dp(types, 0.6).channel,
    }


each_structure = pytest.mark.parametrize(
    "channel",
    [pytest.param(once(make), id=name) for name, make in structured().items()],
    indirect=True,
)
