"""Measures of an attribute U of the database: against the joint law of U and the output."""

import numpy as np
import pytest

import fastpriv as fp
from oracles import groups as oracle

RNG = np.random.default_rng(36)
SIZES = [2, 3, 2]
ROWS = fp.Space(SIZES).rows(np.arange(12)).tolist()


def some_zeros(array):
    array = np.where(RNG.random(array.shape) < 0.3, 0.0, array)
    array[..., 0] += 1e-3
    return array / array.sum(axis=-1, keepdims=True)


def channels():
    kernel = RNG.dirichlet(np.ones(4), 3)
    return [
        fp.Channel(some_zeros(RNG.random((12, 4))), fp.Space(SIZES)),
        fp.ProductChannel([some_zeros(RNG.random((m, 3))) for m in SIZES]),
        fp.ProductChannel([fp.HammingChannel(1, m, 0.8) for m in SIZES]),
        fp.QueryChannel(RNG.integers(0, 3, 12), kernel, SIZES),
        fp.QueryChannel.sum([[0, 1], [0, 1, 2], [0, 1]], RNG.dirichlet(np.ones(4), 5)),
        fp.TiltedChannel(fp.Dense(RNG.dirichlet(np.ones(12)), SIZES), 1.0),
    ]


def attributes():
    labels = RNG.integers(0, 3, 12)
    kernel = some_zeros(RNG.random((12, 3)))
    return [
        (labels, None, labels.tolist()),
        (["a", "b", "a"] * 4, None, ["a", "b", "a"] * 4),
        (kernel, None, [dict(enumerate(row)) for row in kernel.tolist()]),
        (lambda x: x[0] + x[2], None, [x[0] + x[2] for x in ROWS]),
        (lambda v: v > 0, 1, [x[1] > 0 for x in ROWS]),
        ([0, 1, 0], 1, [x[1] == 1 for x in ROWS]),
        ({0: "a", 1: "b"}, 2, [x[2] for x in ROWS]),
        ([7] * 12, None, [7] * 12),
    ]


@pytest.mark.parametrize("trial", range(5))
def test_every_measure(trial):
    prior = fp.Dense(some_zeros(RNG.random(12)), SIZES)
    for channel in channels():
        matrix = channel.nearest_matrix().tolist()
        for attribute, row, listed in attributes():
            joint = oracle.joint_law(matrix, prior.pmf().tolist(), listed)
            leaks = np.array(oracle.leakages(joint))
            about = {"attribute": attribute, "row": row}
            found = fp.pml(channel, prior, **about)
            assert (found >= leaks - 1e-15).all()
            assert found == pytest.approx(leaks, abs=1e-11)
            assert fp.pml(channel, prior, 1, **about) == found[1]
            level = fp.pml_level(channel, prior, row, attribute=attribute)
            assert level == pytest.approx(leaks.max(), abs=1e-11)
            assert fp.max_information(channel, prior, **about) == level
            told = fp.mutual_information(channel, prior, **about)
            assert told == pytest.approx(oracle.information(joint), abs=1e-13)
            most = fp.maximal_leakage(channel, prior=prior, **about)
            assert most == pytest.approx(oracle.maximal_leakage(joint), abs=1e-11)


def test_the_database_itself_is_an_attribute():
    channel, prior = [[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]], [0.25, 0.25, 0.5]
    itself = fp.pml(channel, prior, attribute=[0, 1, 2])
    assert itself == pytest.approx(fp.pml(channel, prior), abs=1e-13)
    assert fp.mutual_information(channel, prior, attribute=np.eye(3)) == pytest.approx(
        fp.mutual_information(channel, prior), rel=1e-14
    )
    # A function of the value, if there is one record.
    assert fp.pml(channel, prior, attribute=lambda v: v == 2) == pytest.approx(
        fp.pml(channel, prior, attribute=[0, 0, 1]), abs=0
    )


def test_an_attribute_of_one_record_of_thousands():
    n = 2000
    kernel = np.linspace(0.2, 0.8, n + 1)
    count = fp.QueryChannel.count(n, np.stack([kernel, 1 - kernel], axis=1))
    for prior in (
        fp.Product.iid([0.3, 0.7], n),
        fp.Exchangeable.beta_binomial(n, 0.5, 0.8),
        fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n),
    ):
        for channel in (fp.HammingChannel(n, 2, 1.0), count):
            told = fp.mutual_information(channel, prior, attribute=["no", "yes"], row=7)
            same = fp.row_information(channel, prior, 7)
            assert float(told) == pytest.approx(float(same), rel=1e-9)
            constant = fp.mutual_information(channel, prior, attribute=[1, 1], row=7)
            assert float(constant) == pytest.approx(0.0, abs=1e-20)
    level = fp.pml_level(count, prior, 7, attribute=[0, 1])
    assert level == pytest.approx(fp.pml_level(count, prior, 7), abs=1e-9)


def test_rare_outputs_keep_an_upper_bound():
    """The exact count of 3,000 bits has outputs rarer than any double."""
    n = 3000
    count = fp.QueryChannel.count(n, np.eye(n + 1))
    prior = fp.Product.iid([0.25, 0.75], n)
    level = fp.pml_level(count, prior, 7, attribute=[0, 1])
    assert level == pytest.approx(np.log(4.0), rel=1e-9)  # no bit is set: record 7 is 0
    assert fp.row_pml(count, prior, [7, 8])[0] >= 2 * np.log(4.0) - 1e-12
    bits = fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2])
    far = fp.HammingChannel(2, 2, 750.0)  # output (1, y) has probability e^-750
    leaks = fp.pml(far, bits, attribute=[0, 1, 0, 1])
    assert leaks == pytest.approx([np.log(2.0)] * 4)


@pytest.mark.parametrize(
    "given",
    [
        {"attribute": [0, 1]},
        {"attribute": [[0.5, 0.5]] * 3},
        {"attribute": [[0.5, 0.6]] * 4},
        {"attribute": {0: 1, 1: 0}},
        {"attribute": lambda x: 1 / 0},
        {"attribute": [0, 1, 2], "row": 0},
        {"attribute": [0, 1], "row": 2},
        {"row": 0},
        {"attribute": [[], [], [], []]},
    ],
)
def test_bad_attributes(given):
    channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)
    for measure in (fp.pml, fp.mutual_information, fp.max_information):
        with pytest.raises(fp.InvalidInput):
            measure(channel, prior, **given)
    with pytest.raises(fp.InvalidInput):
        fp.maximal_leakage(channel, prior=prior, **given)
    with pytest.raises(fp.InvalidInput, match="prior"):
        fp.maximal_leakage(channel, attribute=[0, 0, 1, 1])


def test_a_prior_without_an_attribute_is_named():
    with pytest.raises(fp.InvalidInput, match="maximal_leakage if prior is"):
        fp.maximal_leakage([[0.75, 0.25], [0.25, 0.75]], prior=[0.5, 0.5])


def test_the_prior_is_the_second_argument():
    channel, prior = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], [0.2, 0.3, 0.5]
    about = [[0.4, 0.6], [0.5, 0.5]]  # p(y|u) for U = 0 at the first two databases
    expected = np.log(max(about[0][0], about[1][0]) + max(about[0][1], about[1][1]))
    assert fp.maximal_leakage(channel, prior, attribute=[0, 0, 1]) == pytest.approx(expected)
