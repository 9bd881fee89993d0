"""Joint distributions of S and X, with empty rows and columns."""

import math

import numpy as np
import pytest

import fastpriv as fp

RNG = np.random.default_rng(40)


def cases():
    for _ in range(6):
        matrix = RNG.random((3, 4)) * (RNG.random((3, 4)) < 0.7)
        matrix[0, 0] += 0.1
        yield matrix / matrix.sum()
    empty = np.zeros((3, 4))
    empty[:2, :3] = RNG.dirichlet(np.ones(6)).reshape(2, 3)
    yield empty


@pytest.mark.parametrize("matrix", list(cases()))
def test_everything_ignores_empty_rows(matrix):
    joint = fp.Joint(matrix)
    S, X = matrix.sum(axis=1), matrix.sum(axis=0)
    assert joint.prior.pmf() == pytest.approx(X)
    assert joint.secret.pmf() == pytest.approx(S)
    assert joint.prior.pmf()[:, None] * joint.channel.matrix() == pytest.approx(matrix.T)
    assert joint.secret.pmf()[:, None] * joint.reverse.matrix() == pytest.approx(matrix)
    inner = matrix[S > 0][:, X > 0]
    outer = np.outer(S[S > 0], X[X > 0])
    truth = math.fsum(v * math.log(v / o) for v, o in zip(inner.flat, outer.flat) if v > 0)  # noqa: B905
    assert joint.information() == pytest.approx(truth, abs=1e-12)
    values = np.linalg.svd(inner / np.sqrt(outer), compute_uv=False)
    rho = values[1] if len(values) > 1 else 0.0
    assert joint.maximal_correlation() == pytest.approx(rho, abs=1e-7)
    constant = joint.sdpi_constant(gap=1e-3, time_limit=None)
    assert constant.upper >= rho**2 - 1e-9
    for q in RNG.dirichlet(np.ones(len(inner[0])), 50):
        p = inner.sum(axis=0)
        given = (inner / p).T
        top = (q @ given) @ np.log((q @ given) / (p @ given))
        assert top / (q @ np.log(q / p)) <= constant.upper + 1e-9


def test_where_a_matrix_is_taken():
    matrix = np.array([[0.4, 0.1], [0.1, 0.4]])
    joint = fp.Joint(matrix)
    assert np.array_equal(np.asarray(joint), matrix)
    hamming = 1.0 - np.eye(2)
    same = fp.design_mapping(matrix, hamming, 0.2).value
    assert fp.design_mapping(joint, hamming, 0.2).value == pytest.approx(same, rel=1e-9)
    noisy, kernel = [[0.8, 0.2], [0.2, 0.8]], joint.channel.matrix()
    leak = fp.mutual_information(noisy, joint.prior, attribute=kernel)
    assert 0.0 < leak < joint.information()
    for bad in ([0.5, 0.5], [[0.5, 0.6]], [[-0.1, 1.1]], "joint"):
        with pytest.raises(fp.InvalidInput):
            fp.Joint(bad)
