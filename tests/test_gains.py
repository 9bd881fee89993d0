"""Gain functions with names, and what is refused."""

import numpy as np
import pytest

import fastpriv as fp


def test_tries_win_where_a_guess_is_right():
    gain = fp.gains.tries(5, 3)
    assert gain.shape == (10, 5)
    assert (gain.sum(axis=1) == 3).all()
    assert len(np.unique(gain, axis=0)) == 10
    p = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    assert fp.vulnerability(p, gain) == pytest.approx(0.75, abs=1e-14)


def test_identity_is_one_try():
    assert (fp.gains.identity(4) == np.eye(4)).all()


def test_distances_of_zero():
    assert (fp.gains.distance([[0.0], [0.0]]) == 1.0).all()


def test_a_row_is_an_attribute():
    space = fp.Space([2, 3])
    labels = space.rows(np.arange(6))[:, 1]
    assert (fp.gains.Row(1).matrix(space) == fp.gains.attribute(labels)).all()
    own = [[1.0, -2.0, 0.5]]
    assert fp.gains.Row(1, own).matrix(space).tolist() == [[1.0, -2.0, 0.5] * 2]


def test_penalty_makes_guessing_rare():
    gain = fp.gains.penalty(3, 2.0)
    assert fp.vulnerability([0.3, 0.3, 0.4], gain) == 0.0
    assert fp.vulnerability([0.9, 0.1, 0.0], gain) == pytest.approx(0.7, abs=1e-14)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fp.gains.tries(3, 4), "at most the number of databases 3"),
        (lambda: fp.gains.tries(0, 1), "size must be at least 1"),
        (lambda: fp.gains.penalty(3, -1.0), "loss must be"),
        (lambda: fp.gains.penalty(3, float("nan")), "loss must be"),
        (lambda: fp.gains.distance([[0.0, -1.0]]), "at least 0"),
        (lambda: fp.gains.attribute([]), "one value per database"),
        (lambda: fp.gains.attribute([[1, 2]]), "one value per database"),
        (lambda: fp.gains.attribute([1, "a", None]), "values of one type"),
        (lambda: fp.vulnerability([0.5, 0.5], fp.gains.Row(1)), "i must be a record, 0 .. 0"),
        (lambda: fp.vulnerability([0.5, 0.5], [1.0, 0.0]), "gain"),
        (lambda: fp.vulnerability([0.5, 0.5], [[1.0]]), "column for each of 2 databases"),
        (lambda: fp.vulnerability([0.5, 0.5], [[1.0, np.inf]]), "finite"),
        (lambda: fp.vulnerability([0.5, 0.5], [[1.0, 1e200]]), "divide it|Divide it"),
        (lambda: fp.vulnerability([0.5, 0.5], "abc"), "gain"),
        (lambda: fp.g_leakage(np.eye(2), [0.5, 0.5], [[-1.0, -1.0]]), "negative"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(fp.InvalidInput, match=words):
        call()


def test_too_many_tries():
    with pytest.raises(fp.TooLarge, match="gain function"):
        fp.gains.tries(60, 30)
