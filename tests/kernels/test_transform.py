"""The Hamming transform against one axis at a time."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastpriv._core import transform as _transform
from fastpriv._core.transform import mix

SIZES = [
    (),
    (1,),
    (2,),
    (7,),
    (5000,),
    (2,) * 8,
    (2,) * 13,
    (2,) * 17,
    (3,) * 10,
    (5, 2, 3, 1, 7),
    (101, 11, 13),
    (2, 3) * 5,
    (2,) * 9 + (5,),
    (4, 1, 1, 2, 2, 2, 9),
    (20000, 3),
    (3, 20000),
]


def plain(v, sizes, c):
    """Apply v + c (sum - m v) one axis at a time."""
    v = v.reshape(sizes)
    for axis, m in enumerate(sizes):
        v = v + c[axis] * (v.sum(axis=axis, keepdims=True) - m * v)
    return v.reshape(-1)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_against_one_axis_at_a_time(sizes):
    rng = np.random.default_rng(0)
    v = rng.random(int(np.prod(sizes)))
    c = [rng.random() / m for m in sizes]
    assert np.allclose(mix(v.copy(), sizes, c), plain(v, sizes, c), rtol=1e-12, atol=0)
    back = [-step / (1 - m * step) for m, step in zip(sizes, c, strict=True)]
    if len(sizes) < 8:
        assert np.allclose(mix(mix(v.copy(), sizes, c), sizes, back), v, rtol=1e-6)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 7), max_size=9), st.integers(0, 2**32 - 1))
def test_random_sizes(sizes, seed):
    rng = np.random.default_rng(seed)
    assume(np.prod(sizes) <= 2**17)
    v, c = rng.random(int(np.prod(sizes))), rng.normal(size=len(sizes)) / 4
    truth, scale = plain(v, sizes, c), plain(v, sizes, -np.abs(c))
    assert np.all(np.abs(mix(v.copy(), sizes, c) - truth) <= 1e-13 * np.abs(scale).max())


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_constant_stays_exactly_as_it_is(sizes):
    v = np.full(int(np.prod(sizes)), 0.1)
    assert np.array_equal(mix(v.copy(), sizes, [-3.7] * len(sizes)), v)


def test_threads_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(1)
    for sizes in [(2,) * 19, (3,) * 12, (7, 2, 5, 11, 13, 8, 3)]:
        v, c = rng.random(int(np.prod(sizes))), rng.random(len(sizes)) / 9
        both = mix(v.copy(), sizes, c)
        monkeypatch.setattr("fastpriv._core.threads.workers", lambda: 1)
        assert np.array_equal(mix(v.copy(), sizes, c), both)
        monkeypatch.undo()


def test_positive_entries_keep_their_relative_accuracy():
    # Entries over 300 orders of magnitude, mixed by a step of 1e-290: no entry may be lost.
    v = 10.0 ** -np.linspace(0, 300, 2**12)
    c = [1e-290] * 12
    assert np.allclose(mix(v.copy(), (2,) * 12, c), plain(v, (2,) * 12, c), rtol=1e-13, atol=0)


def test_plans_are_kept():
    _transform._plan.cache_clear()
    mix(np.ones(8), (2, 2, 2), [0.1] * 3)
    mix(np.ones(8), (2, 2, 2), [0.2] * 3)
    assert _transform._plan.cache_info().hits == 1
