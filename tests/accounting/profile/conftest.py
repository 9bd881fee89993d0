"""Every test of this folder counts in as many digits as the references need."""

import pytest
from mpmath import mp

from oracles.profile import DIGITS


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(DIGITS):
        yield  # enough for sums of positive terms; differences near a corner are clipped there
