"""The tutorial on the 2020 census against a contour integral in plain NumPy."""

import doctest
import math
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "census.md"


@pytest.fixture(scope="module")
def page():
    """Names that the first examples of the page define, up to the profile of all queries."""
    names = {}
    for example in doctest.DocTestParser().get_examples(PAGE.read_text()):
        exec(example.source, names)
        if "profile" in names:
            return names
    raise AssertionError("the page defines no profile")


def log_moment(sigma, s):
    """log E e^(sL) of discrete Gaussian noise moved by one: L(x) = (1 - 2x) / (2 sigma^2)."""
    reach = math.ceil(12 * sigma) + 4
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    lifted = np.exp(-(x**2) / (2 * sigma**2) + np.outer(s, 0.5 - x) / sigma**2).sum(axis=1)
    return np.log(lifted / weights.sum())


def delta(sigmas, t):
    """delta(t) by the trapezoid rule on a line through about the saddle point."""
    c, step = 2.7, 0.05
    s = c + 1j * step * np.arange(200)
    logs = sum(count * log_moment(sigma, s) for sigma, count in Counter(sigmas).items())
    terms = (np.exp(logs - s * t) / (s * (s + 1))).real
    return step / (2 * math.pi) * (2 * terms.sum() - terms[0])


def test_shares_are_those_of_the_budget(page):
    assert all(sum(shares) == whole for shares, whole in page["queries"].values())
    assert sum(page["levels"].values()) == 4099


def test_epsilon_of_all_queries(page):
    sigmas = [math.sqrt(1 / rho) for rho in chain(*page["rho"].values()) for _ in range(2)]
    assert sum(1 / (2 * sigma**2) for sigma in sigmas) == pytest.approx(2.556225581, abs=1e-9)
    assert delta(sigmas, 16.465155376) == pytest.approx(1e-10, rel=1e-8)
    bracket = page["profile"].epsilon(1e-10)
    assert bracket.lower <= 16.465155377
    assert bracket.upper >= 16.465155375
    assert bracket.width < 1e-10
