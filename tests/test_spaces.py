"""Spaces against lists of databases."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o

SIZES = [(2,), (1,), (3, 2), (2, 2, 2), (2, 1, 4), (1, 1), (5, 3, 2, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_numbering(sizes):
    space = fp.Space(sizes)
    databases = o.databases(sizes)
    assert space.size == len(databases)
    assert space.n == len(sizes)
    assert [tuple(r) for r in space.rows(np.arange(space.size)).tolist()] == databases
    assert space.index(databases).tolist() == list(range(space.size))
    assert isinstance(space.index(databases[-1]), int)
    cube = np.zeros((2, 3), dtype=int)
    assert space.rows(cube).shape == (2, 3, space.n)
    assert space.index(space.rows(cube)).shape == (2, 3)


@pytest.mark.parametrize("sizes", SIZES)
def test_shells(sizes):
    space = fp.Space(sizes)
    for centre, l in itertools.product(range(space.size), range(len(sizes) + 2)):
        truth = o.shell(centre, l, sizes)
        assert sorted(space.shell(centre, l).tolist()) == truth
        assert space.shell_size(l) == len(truth)
        for chunk in (1, 2, 7):
            parts = list(space.iter_shell(centre, l, chunk))
            assert all(0 < len(part) <= chunk for part in parts)
            walked = list(itertools.chain.from_iterable(part.tolist() for part in parts))
            assert walked == space.shell(centre, l).tolist()
        if l == 1:
            assert sorted(space.neighbours(centre).tolist()) == truth


@pytest.mark.slow
def test_a_large_shell_is_walked_in_constant_memory():
    space = fp.Space([3] * 30)
    size = space.shell_size(6)
    assert size == math.comb(30, 6) * 2**6
    seen = total = 0
    for part in itertools.islice(space.iter_shell(12345, 6, 1 << 16), 20):
        assert len(np.unique(part)) == len(part)
        rows = space.rows(part)
        assert ((rows != space.rows(12345)).sum(axis=1) == 6).all()
        seen += len(part)
        total += 1
    assert (seen, total) == (20 << 16, 20)


def test_huge_spaces_use_exact_integers():
    space = fp.Space.hamming(200, 3)
    assert space.size == 3**200
    rows = np.arange(400).reshape(2, 200) % 3
    index = space.index(rows)
    assert index[0] == int("".join(map(str, rows[0])), 3)
    assert np.array_equal(space.rows(index), rows)
    assert len(space.neighbours(0)) == 400
    assert int(space.neighbours(0).max()) == 2 * 3**199
    assert space.shell_size(200) == 2**200
    assert fp.Space.hamming(10**6, 2).shell_size(2) == math.comb(10**6, 2)
    with pytest.raises(fp.TooLarge, match="64 bits"):
        space.shell(0, 2)
    edge = fp.Space.hamming(63, 2)
    assert edge.rows(edge.size - 1).tolist() == [1] * 63
    assert edge.index([1] * 63) == 2**63 - 1


def test_equality_and_repr():
    assert fp.Space([2, 2]) == fp.Space.hamming(2, 2)
    assert hash(fp.Space([2, 2])) == hash(fp.Space.hamming(2, 2))
    assert fp.Space([2, 3]) != fp.Space([3, 2])
    assert repr(fp.Space([2, 3])) == "Space([2, 3])"
    assert repr(fp.Space.hamming(10**6, 2)) == "Space.hamming(n=1000000, m=2)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.Space([]), "non-empty"),
        (lambda: fp.Space([2, 0]), "at least 1"),
        (lambda: fp.Space([2.5]), "integers"),
        (lambda: fp.Space(3), "sequence"),
        (lambda: fp.Space([2, 2]).index([0, 2]), "size - 1"),
        (lambda: fp.Space([2, 2]).index([0]), "n = 2"),
        (lambda: fp.Space([2, 2]).rows(4), "0 .. 3"),
        (lambda: fp.Space([2, 2]).rows(-1), "0 .. 3"),
        (lambda: fp.Space([2, 2]).rows(0.5), "integers"),
        (lambda: fp.Space([2, 2]).shell(4, 1), "center"),
        (lambda: fp.Space([2, 2]).shell(0, -1), "at least 0"),
        (lambda: list(fp.Space([2, 2]).iter_shell(0, 1, 0)), "chunk"),
    ],
)
def test_errors_say_what_was_wrong(make, words):
    with pytest.raises(fp.InvalidInput, match=words):
        make()


def test_shells_too_large_to_list_are_refused():
    with pytest.raises(fp.TooLarge, match="iter_shell"):
        fp.Space.hamming(60, 2).shell(0, 30)
