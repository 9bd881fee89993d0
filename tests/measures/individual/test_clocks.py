"""Time limits, by a clock that each look moves on."""

import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._core import clock


class Ticking:
    """A clock that shows a hundredth of a second more at each look."""

    def __init__(self):
        self.looks = 0

    def monotonic(self):
        self.looks += 1
        return 0.01 * self.looks


@pytest.fixture
def ticking(monkeypatch):
    watch = Ticking()
    monkeypatch.setattr(clock, "time", watch)
    return watch


def random_channel(sizes, outputs, sharpness=0.5):
    rng = np.random.default_rng([outputs, *sizes])
    return fp.Channel(rng.dirichlet(np.full(outputs, sharpness), math.prod(sizes)), sizes)


QUESTIONS = {
    "bits": lambda s: fp.individual_capacity(random_channel([2] * 7, 32, 5.0), time_limit=s),
    "three values": lambda s: fp.individual_capacity(random_channel([3] * 4, 12), time_limit=s),
    "a group": lambda s: fp.group_capacity(random_channel([2] * 6, 12), 2, time_limit=s),
    "another data set": lambda s: fp.cross_capacity(random_channel([2] * 6, 8), 3, time_limit=s),
    "entropy": lambda s: fp.constrained_capacity(random_channel([2] * 4, 16), 2.0, time_limit=s),
    "chains": lambda s: fp.individual_capacity(random_channel([2] * 6, 4), "markov", time_limit=s),
    "bits of bounded chances": lambda s: fp.individual_capacity(
        random_channel([2] * 6, 4), fp.PriorSet.bernoulli_interval(6, 0.2), time_limit=s
    ),
    "a group of E_d": lambda s: fp.group_capacity(fp.HammingChannel(9, 2, 0.5), 3, time_limit=s),
    "copies": lambda s: fp.individual_capacity(fp.HammingChannel(100, 10, 0.3), time_limit=s),
    "a box of priors": lambda s: fp.individual_capacity(
        random_channel([2] * 5, 8), fp.PriorSet.min_entropy(32, 1.0), time_limit=s
    ),
    "rows in a box": lambda s: fp.individual_capacity(
        random_channel([2] * 5, 4), fp.PriorSet.row_box([0.2, 0.3], [0.7, 0.8], 5), time_limit=s
    ),
    "data processing": lambda s: fp.sdpi_constant(
        random_channel([100], 100).matrix(), np.full(100, 0.01), time_limit=s
    ),
    "a product": lambda s: fp.individual_capacity(
        fp.ProductChannel([random_channel([3], 3).matrix(), *[np.eye(3) * 0.4 + 0.2] * 3]),
        time_limit=s,
    ),
}


@pytest.mark.slow(
    but=[
        "bits",
        "three values",
        "a group",
        "another data set",
        "chains",
        "bits of bounded chances",
        "a box of priors",
        "rows in a box",
    ]
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_limits_are_kept(question, ticking):
    """After the limit no search looks at the clock more than a few times."""
    for seconds in (0.0, 0.5):
        ticking.looks = 0
        bracket = QUESTIONS[question](seconds)
        assert 0.01 * ticking.looks <= seconds + 0.5
        assert 0.0 <= bracket.lower <= bracket.upper


@pytest.mark.parametrize("priors", ["markov", fp.PriorSet.bernoulli_interval(6, 0.2)])
def test_rows_that_there_is_no_time_for_tell_at_most_a_bit(priors, ticking):
    channel = random_channel([2] * 6, 4)
    hurried = fp.individual_capacity(channel, priors, time_limit=0.0)
    whole = fp.individual_capacity(channel, priors, time_limit=None)
    assert hurried.lower <= whole.lower <= whole.upper < hurried.upper
    assert hurried.upper == pytest.approx(math.log(2.0), rel=1e-12)


@pytest.mark.slow
def test_all_of_the_limit_is_used(ticking):
    """A search that is not over has looked at the clock until the end."""
    bracket = fp.individual_capacity(random_channel([4] * 4, 24), time_limit=0.8)
    assert bracket.width > 1e-3
    assert 0.01 * ticking.looks >= 0.8


@pytest.mark.parametrize(
    "priors", ["all", "independent", "markov", fp.PriorSet.bernoulli_interval(5, 0.2)]
)
def test_the_channel_capacity_bounds_every_set_of_priors(priors, ticking):
    """Flat rows, of which all together tell less than a bit."""
    channel = random_channel([2] * 5, 6, 20.0)
    upper = fp.individual_capacity(channel, priors, time_limit=0.0).upper
    assert upper <= fp.channel_capacity(channel).upper * (1.0 + 2e-3) < 0.2


@pytest.mark.parametrize("question", ["three values", "a group", "another data set"])
def test_known_bounds_are_not_left_out(question):
    """Without any time the channel capacity still bounds the upper end."""
    shapes = {"three values": ([3] * 4, 12), "a group": ([2] * 6, 12)}
    channel = random_channel(*shapes.get(question, ([2] * 6, 8)))
    upper = QUESTIONS[question](0.0).upper
    assert upper <= fp.channel_capacity(channel).upper * (1.0 + 2e-3)
