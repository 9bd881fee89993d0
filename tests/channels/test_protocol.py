"""A channel structure needs a matrix only: every measure has an algorithm through it."""

import copy
import pickle

import numpy as np
import pytest

import cases
import fastpriv as fp
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.realised import drawn_level, realised
from fastpriv.measures.witnesses import (
    extreme_witness,
    leakage_witness,
    ruling_out,
    step_witness,
)


class Plain(fp.AbstractChannel):
    """The least that a structure can answer."""

    def __init__(self, matrix, space):
        self.space = space
        self._table = np.asarray(matrix)
        outputs = self._table.shape[1]
        self.output_space = space if outputs == space.size else fp.Space([outputs])

    def matrix(self):
        table = self._table.copy()
        table.flags.writeable = False  # a structure may guard what it keeps
        return table


def matrices():
    rng = np.random.default_rng(7)
    for outputs in (3, 8):
        full = rng.dirichlet(np.ones(outputs), 8)
        yield full
        holes = np.where(rng.random(full.shape) < 0.3, 0.0, full) + np.eye(8, outputs) * 0.1
        yield holes / holes.sum(axis=1, keepdims=True)


SPACE = fp.Space.hamming(3, 2)
PAIRS = [(Plain(W, SPACE), fp.Channel(W, SPACE)) for W in matrices()]
PRIORS = [
    fp.Uniform(3, 2),
    fp.Exchangeable([0.1, 0.2, 0.3, 0.4]),
    fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 3),
    fp.Dense(np.random.default_rng(1).dirichlet(np.ones(8)), [2, 2, 2]),
]

OF_CHANNEL = {
    "dp": fp.dp_level,
    "realised": fp.realised_level,
    "hockey-stick": lambda c: fp.hockey_stick(c, [0.0, 0.5, 2.0]),
    "hockey-stick-epsilon": lambda c: fp.hockey_stick_epsilon(c, 0.1),
    "leakage-capacity": fp.leakage_capacity,
    "maximal-leakage": fp.maximal_leakage,
    "singles-out": fp.singles_out,
    "discloses": lambda c: fp.discloses(c, [0, 0, 0, 0, 1, 1, 1, 1]),
    "capacity": lambda c: fp.channel_capacity(c),
    "individual": lambda c: fp.individual_capacity(c),
    "contraction": fp.contraction_coefficient,
    "all-priors": lambda c: fp.pml_level(c, fp.PriorSet.all(8), row="worst"),
    "product-priors": lambda c: fp.pml_level(c, fp.PriorSet.product(SPACE), row=1),
    "bernoulli": lambda c: fp.pml_level(c, fp.PriorSet.bernoulli_interval(3, 0.2)),
    "box": lambda c: fp.pml_level(c, fp.PriorSet.box([0.1] * 8, [0.2] * 8)),
    "step": step_witness,
    "extreme": extreme_witness,
    "ruling-out": ruling_out,
    "columns": lambda c: (c.column_maxima(), c.column_minima()),
    "draws": lambda c: c.sample([[0, 1, 1], [1, 0, 1]] * 50, rng=5),
    "profile": lambda c: fp.accounting.PrivacyProfile.of(c).delta(0.5),
    "kinds": lambda c: c.record_kinds,
}
UNDER_PRIOR = {
    "identifiability": fp.identifiability_level,
    "information": fp.mutual_information,
    "pml": fp.pml,
    "one-output": lambda c, p: fp.pml(c, p, y=1),
    "pml-level": fp.pml_level,
    "row": lambda c, p: fp.row_pml(c, p, 1),
    "row-level": lambda c, p: fp.pml_level(c, p, row="worst"),
    "one-row-output": lambda c, p: fp.row_pml(c, p, 1, y=0),
    "information-privacy": fp.information_privacy_level,
    "worst-factor": fp.worst_leakage_factor,
    "correlation": fp.maximal_correlation,
    "sdpi": lambda c, p: fp.sdpi_constant(c, p, time_limit=None),
    "output": lambda c, p: c.output(p).pmf(),
    "leaking": leakage_witness,
    "posterior-step": step_witness,
    "chain": lambda c, p: fp.accounting.pml_chain(p, [(c, 0), (c, 1)]),
}


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "output"):  # a witness
        return all(same(getattr(a, k), getattr(b, k)) for k in ("output", "database", "other"))
    if isinstance(a, float) and isinstance(b, float):  # kernels may add in another order
        return a == b or abs(a - b) <= 4.0 * np.spacing(abs(b))
    if isinstance(a, np.ndarray) and a.dtype == np.float64:
        return a.shape == b.shape and all(map(same, a.reshape(-1).tolist(), b.reshape(-1).tolist()))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


@pytest.mark.grid
@pytest.mark.parametrize("name", OF_CHANNEL)
@pytest.mark.parametrize("pair", PAIRS)
def test_every_measure_of_a_channel_needs_its_matrix_only(pair, name):
    plain, dense = pair
    assert same(OF_CHANNEL[name](plain), OF_CHANNEL[name](dense))


@pytest.mark.grid
@pytest.mark.parametrize("name", UNDER_PRIOR)
@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
@pytest.mark.parametrize("pair", PAIRS)
def test_every_measure_under_a_prior_needs_the_matrix_only(pair, prior, name):
    plain, dense = pair
    assert same(UNDER_PRIOR[name](plain, prior), UNDER_PRIOR[name](dense, prior))


def test_outputs_that_are_databases_have_a_distortion():
    plain, dense = PAIRS[2]
    assert plain.output_space == SPACE
    assert fp.distortion(plain, PRIORS[0]) == fp.distortion(dense, PRIORS[0])
    with pytest.raises(fp.InvalidInput, match="metric must be given"):
        fp.distortion(PAIRS[0][0], PRIORS[0])


def test_what_is_drawn_stands_for_the_channel():
    plain, dense = PAIRS[0]
    (mine, slack), (theirs, other) = realised(plain), realised(dense)
    assert np.array_equal(mine.matrix(), theirs.matrix())
    assert slack == other


def test_a_shortcut_is_one_registration():
    class Constant(Plain):
        pass

    @neighbour_level.register
    def _(channel: Constant) -> float:
        return -1.0  # told apart from the general algorithm

    constant = Constant([[0.5, 0.5]] * 8, SPACE)
    assert fp.dp_level(constant) == -1.0
    assert fp.dp_level(Plain([[0.5, 0.5]] * 8, SPACE)) == 0.0


def test_a_sampler_of_its_own_must_register_its_level():
    class First(Plain):
        def draw(self, rows, source):
            return np.zeros(len(rows), dtype=np.int64)

    channel = First([[0.5, 0.5]] * 8, SPACE)
    assert channel.sample([[0, 0, 1]]).tolist() == [0]
    with pytest.raises(NotImplementedError, match="drawn_level"):
        drawn_level(channel)


def test_a_channel_without_a_matrix_is_none():
    with pytest.raises(TypeError, match="matrix"):
        fp.AbstractChannel()


@pytest.mark.parametrize("kind", [fp.TiltedChannel, fp.PosteriorChannel])
def test_independent_rows_make_a_row_by_row_channel(kind):
    law = fp.Product([[0.6, 0.4], [0.3, 0.7]])
    rows, vectors = kind(law, 1.5), kind(fp.Dense(law.pmf(), [2, 2]), 1.5)
    assert isinstance(rows, kind)
    assert rows.kernels is not None
    assert vectors.kernels is None
    assert np.allclose(rows.matrix(), vectors.matrix(), rtol=1e-12)
    for channel in (rows, vectors):
        for copied in (copy.copy(channel), pickle.loads(pickle.dumps(channel))):
            assert type(copied) is type(channel)
            assert np.array_equal(copied.matrix(), channel.matrix())
            assert repr(copied) == repr(channel)
            assert fp.dp_level(copied) == fp.dp_level(channel)


def test_a_plain_vector_is_the_law_of_one_row():
    law = [0.5, 0.3, 0.2]
    for kind in (fp.TiltedChannel, fp.PosteriorChannel):
        assert np.array_equal(kind(law, 2.0).matrix(), kind(fp.Dense(law), 2.0).matrix())
    assert fp.shell_profile(law, 0).tolist() == fp.shell_profile(fp.Dense(law), 0).tolist()


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.7, 700.0])
def test_a_product_of_channels_is_that_of_their_matrices(epsilon):
    rng = np.random.default_rng(12)
    W = cases.kernel(rng, 3, 2)
    hamming = fp.HammingChannel(2, 2, epsilon)
    parts = [hamming, W, fp.Channel(W), fp.ProductChannel([W, np.eye(2)])]
    whole = fp.ProductChannel(parts)
    matrix = np.ones((1, 1))
    for part in parts:
        matrix = np.kron(matrix, part if isinstance(part, np.ndarray) else part.matrix())
    assert whole.space.sizes == (2, 2, 3, 3, 3, 2)
    # A product that underflows beside a positive one is the least double, to keep the level.
    assert np.allclose(whole.matrix(), matrix, rtol=1e-14, atol=5e-324)
    assert len(whole.kernels.distinct) == 3  # equal rows are stored once
    level = fp.dp_level(fp.ProductChannel([hamming, hamming]))
    assert epsilon <= level <= epsilon * (1.0 + 1e-15)  # a matrix would not give 700
    assert fp.ProductChannel.from_json(whole.to_json()) == whole


def test_a_product_of_many_rows_is_quick():
    million = fp.HammingChannel(1_000_000, 2, 0.5)
    level = fp.strong_dp_level(fp.ProductChannel([million, million]))
    assert 1e6 <= level <= 1e6 * (1.0 + 1e-15)


@pytest.mark.parametrize("factor", [fp.Channel(np.eye(4), [2, 2]), 3, fp.Uniform(1, 2)])
def test_what_is_no_factor_is_refused(factor):
    with pytest.raises(fp.InvalidInput, match="factor 1"):
        fp.ProductChannel([fp.HammingChannel(1, 2, 1.0), factor])


class Columns(fp.AbstractChannel):
    """A structure whose matrix is in Fortran order."""

    def __init__(self, matrix):
        self.space, self.output_space = fp.Space([4]), fp.Space([3])
        self._matrix = np.asfortranarray(matrix)

    def matrix(self):
        return self._matrix


@pytest.mark.parametrize(
    "measure",
    [
        fp.dp_level, fp.maximal_leakage, fp.leakage_capacity, fp.channel_capacity,
        lambda channel: fp.pml(channel, [0.1, 0.2, 0.3, 0.4]),
        lambda channel: fp.mutual_information(channel, [0.1, 0.2, 0.3, 0.4]),
        lambda channel: fp.hockey_stick(channel, 0.1),
        lambda channel: fp.identifiability_level(channel, [0.1, 0.2, 0.3, 0.4]),
        lambda channel: channel.sample([[0], [1]], rng=1),
    ],
)  # fmt: skip
def test_a_matrix_may_be_in_any_order(measure):
    matrix = np.random.default_rng(3).dirichlet(np.ones(3), size=4)
    np.testing.assert_array_equal(measure(Columns(matrix)), measure(fp.Channel(matrix)))
