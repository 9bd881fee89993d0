"""Inputs that once gave a wrong number, a NaN, a raw error or an aliased array."""

import math
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fastpriv as fp
import oracles as o
from cases import close


class Lazy:
    """A sequence that makes its items on the fly, so that identities come again."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i].tolist()


def test_sequences_that_make_their_items_on_the_fly():
    laws = np.random.default_rng(0).dirichlet([1, 1], 200)
    assert np.array_equal(fp.Product(Lazy(laws)).marginals, laws)
    assert np.array_equal(fp.Product(law for law in laws).marginals, laws)
    factors = np.random.default_rng(0).dirichlet([1, 1], (6, 2))
    truth = fp.ProductChannel(list(factors)).matrix()
    assert np.array_equal(fp.ProductChannel(Lazy(factors)).matrix(), truth)


def test_returned_arrays_are_not_the_object():
    channel = fp.ProductChannel([[[0.5, 0.5], [0.25, 0.75]]])
    channel.matrix()[:] = 0.5
    assert fp.dp_level(channel) > 0.5
    channel = fp.HammingChannel(1, 2, 1.0)
    channel.matrix()[:] = 0.5
    assert channel.column_maxima()[0] > 0.7
    with pytest.raises(ValueError, match="read-only"):
        fp.Product([[0.5, 0.5]]).marginals[0][0] = 5


def test_identifiability_of_a_clipped_e_i_is_what_its_matrix_has():
    prior = fp.Dense(fp.Product.iid([0.497, 0.503], 5).pmf(), [2] * 5)
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde())
    realised = o.identifiability_level(channel.matrix(), prior.pmf(), [2] * 5)
    assert fp.identifiability_level(channel, prior) >= realised
    assert close(fp.identifiability_level(channel, prior), realised, 1e-5)


@pytest.mark.parametrize(("n", "a"), [(3000, 1e4), (1114, 1e4), (1000, 1e8), (100, 1e12)])
def test_beta_binomial_keeps_its_tails_and_digits(n, a):
    prior = fp.Exchangeable.beta_binomial(n, a, a)
    truth = o.log((n - 1 + o.num(a)) / o.num(a))
    assert close(prior.epsilon_x(), truth, 1e-12 if a < 1e12 else 1e-4)
    assert np.isfinite(prior.log_prob(np.zeros(n, dtype=int)))


def test_joint_laws_do_not_underflow():
    matrix, p = [[1 - 1e-150, 1e-150], [1.0, 1e-303]], [1 - 1e-20, 1e-20]
    truth = o.identifiability_level(matrix, p, [2])
    assert close(fp.identifiability_level(matrix, p), truth)
    assert close(fp.identifiability_level(fp.QueryChannel([0, 1], matrix, [2]), p), truth)
    chain = fp.Markov([0.5, 0.5], [[1 - 1e-200, 1e-200], [1e-200, 1 - 1e-200]], 5)
    assert chain.epsilon_x() == pytest.approx(2 * 200 * math.log(10), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e-2])
def test_queries_keep_their_digits_at_small_levels(scale):
    rng = np.random.default_rng(1)
    p = 1 + scale * rng.random(8)
    p /= p.sum()
    kernel = 1 + scale * rng.random((3, 4))
    kernel /= kernel.sum(axis=1, keepdims=True)
    values = rng.integers(0, 3, 8)
    truth = o.identifiability_level(o.query_matrix(values, kernel), p, [2] * 3)
    assert close(fp.identifiability_level(fp.QueryChannel(values, kernel, [2] * 3), p), truth)


def test_levels_are_never_below_the_truth():
    rng = np.random.default_rng(2)
    for _ in range(300):
        p, epsilon = rng.dirichlet([1, 1]), rng.random() * 3
        prior, channel = fp.Dense(p), fp.HammingChannel(1, 2, epsilon)
        truth = o.num(epsilon) + o.epsilon_x(p, [2])
        assert fp.identifiability_level(channel, prior) >= truth
        matrix = rng.dirichlet([1, 1, 1], 4)
        assert fp.dp_level(matrix) >= o.dp_level(matrix, [4])


def test_indices_of_any_integer_type():
    assert fp.Space.hamming(62, 2).rows(np.uint64(2**61 + 1))[-1] == 1
    with pytest.raises(fp.InvalidInput):
        fp.Space([4, 4]).rows(np.array([1.7, 5.9], dtype=object))


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 745.0, 1000.0])
def test_extreme_levels_give_no_nan(epsilon):
    channel = fp.PosteriorChannel(fp.Uniform(2, 2), epsilon)
    for array in (channel.matrix(), channel.column_minima()):
        assert np.isfinite(array).all()
    assert np.isfinite(fp.mutual_information(channel, fp.Uniform(2, 2)))


def test_large_objects_can_be_printed_and_named_in_errors():
    for thing in [
        fp.ProductChannel([[[0.5, 0.5], [0.5, 0.5]]] * 20000),
        fp.Uniform(20000, [2, 3] * 10000),
        fp.HammingChannel(20000, [2, 3] * 10000, 1.0),
        fp.Space([2, 3] * 10000),
    ]:
        assert len(repr(thing)) < 120
    with pytest.raises(fp.TooLarge):
        fp.Uniform(20000, [2, 3] * 10000).pmf()
    with pytest.raises(fp.InvalidInput, match="about 2\\^"):
        fp.Space.hamming(20000, 2).rows(-1)
    with pytest.raises(fp.InvalidInput, match="about 2\\^"):
        fp.mutual_information(fp.HammingChannel(20000, 2, 1.0), [0.5, 0.5])


def test_a_single_row_of_many_values():
    prior = fp.Uniform(1, 60000)
    assert prior.epsilon_x() == 0.0
    assert fp.HammingChannel(1, 60000, 1.0).output(prior).epsilon_x() < 1e-12
    with pytest.raises(fp.TooLarge):
        fp.HammingChannel(1, 60000, 1.0).matrix()


def test_a_factor_with_one_output():
    channel = fp.ProductChannel([[[1.0], [1.0]]] * 3)
    prior = fp.Exchangeable([0.25] * 4)
    assert channel.output(prior).pmf().tolist() == [1.0]
    assert fp.mutual_information(channel, prior) == 0.0


def test_an_information_bracket_never_exceeds_the_entropy():
    still = fp.Markov([1, 0], [[0, 1], [1, 0]], 1000)
    assert fp.mutual_information(fp.HammingChannel(1000, 2, 1.0), still).upper == 0.0


def test_laws_slightly_off_are_normalised():
    prior = fp.Product.iid([0.5, 0.5 + 9e-10], 10**6)
    ones = prior.log_prob(np.ones(10**6, dtype=int))
    assert ones == pytest.approx(10**6 * math.log((0.5 + 9e-10) / (1 + 9e-10)), rel=1e-12)


def test_other_numbers_and_layouts_give_the_same_bits():
    matrix = np.random.default_rng(3).dirichlet([1] * 4, 4)
    truth = fp.dp_level(matrix)
    doubled = np.zeros((8, 8))
    doubled[::2, ::2] = matrix
    fractions = [[Fraction(v) for v in row] for row in matrix]
    for same in (matrix.tolist(), np.asfortranarray(matrix), doubled[::2, ::2], fractions):
        assert fp.dp_level(same) == truth


@pytest.mark.parametrize(
    "make",
    [
        lambda: fp.Dense(np.array([0.5 + 1j, 0.5 - 1j])),
        lambda: fp.Dense([10**400, 1]),
        lambda: fp.Dense([[0.5, 0.5], [1.0]]),
        lambda: fp.Dense([1e308, 1e308]),
        lambda: fp.Dense(np.ma.array([0.5, 0.5], mask=[True, False])),
        lambda: fp.Dense(["0.5", "0.5"]),
        lambda: fp.Product(None),
        lambda: fp.Product(5),
        lambda: fp.Product({(1,): 1}),
        lambda: fp.Exchangeable({"ab": 1.0}),
        lambda: fp.Exchangeable({(1.0, 1.0): 1.0}),
        lambda: fp.Exchangeable({(1, 1): "x"}),
        lambda: fp.Exchangeable({(1,) * 70: 1.0}),
        lambda: fp.Exchangeable.beta_binomial(10**13, 1, 1),
        lambda: fp.HammingChannel(1, 2, 10**400),
        lambda: fp.HammingChannel(1, 2, "1.0"),
        lambda: fp.HammingChannel(True, 2, 1.0),
        lambda: fp.HammingChannel(10**20, 1, 1.0),
        lambda: fp.HammingChannel(2, 10**400, 1.0),
        lambda: fp.Space([[2], [3, 4]]),
        lambda: fp.Space([2, 2]).rows(None),
        lambda: fp.Space([2**40]).neighbours(0),
        lambda: fp.shell_profile([0.5, 0.6], 0),
        lambda: fp.h("1", 2, 2),
        lambda: fp.h(10**400, 2, 2),
        lambda: fp.h_inverse([[1.0], [1.0, 2.0]], 2, 2),
        lambda: fp.dp_level(fp.Uniform(2, 2)),
        lambda: fp.distortion(np.eye(2), [0.5, 0.5], [[np.nan, 0], [0, 0]]),
        lambda: fp.distortion(np.eye(2), [0.5, 0.5], "hamming"),
        lambda: fp.mutual_information(np.eye(2), None),
        lambda: fp.estimate(np.zeros((5, 50), dtype=int) + 9, "exchangeable"),
        lambda: fp.estimate([[0, 1]], np.array(["iid"])),
        lambda: fp.Uniform(2, 2).sample(10**13),
        lambda: fp.Uniform(2, 2).sample(1, -1),
        lambda: fp.ColumnsChannel(5),
        lambda: fp.least_capacity([[0, 1], [1]], 0.3),
        lambda: fp.least_capacity(np.eye(2), [0.1, 0.2, 0.3]),
        lambda: fp.exact_curve([0.4, 0.6], 0.5, 2.0**31),
        lambda: fp.exact_curve([0.4, 0.6], 0.5, 1.0, np.array(["dp", "dp"])),
        lambda: fp.perfect_privacy(np.eye(2) / 2, 1 - np.eye(2), time_limit=np.ones(2)),
        lambda: fp.tradeoff_curve([0.4, 0.6], [np.ones(2)], [0.2]),
        lambda: fp.threshold_query_leakage(5, 2, 0.6, answer=np.ones(2)),
        lambda: fp.remaining_uncertainty_bound(np.ones(2), [0.5, 0.5]),
        lambda: fp.preview_release(10**400, domain=[2], epsilon=1.0),
        lambda: fp.HadamardChannel(3, 2.0**31),
        lambda: fp.accounting.pml_chain([0.5, 0.5], 5),
        lambda: fp.accounting.random_allocation(1.0, 10**400),
        lambda: fp.mechanisms.MaxEntropyNoise(np.ones(2), 1.0),
        lambda: fp.mechanisms.mean_deviation_bound(1.0, 0.5, 0.5, 10**400),
    ],
)
def test_refused_in_words(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((fp.InvalidInput, fp.TooLarge)):
            make()


def test_hints():
    with pytest.raises(fp.InvalidInput, match="percentages"):
        fp.dp_level([[50.0, 50.0], [20.0, 80.0]])
    with pytest.raises(fp.InvalidInput, match="transposed"):
        fp.dp_level(np.array([[0.5, 0.9], [0.5, 0.1]]))
    with pytest.raises(fp.InvalidInput, match="must be a channel"):
        fp.mutual_information(fp.Uniform(2, 2), fp.HammingChannel(2, 2, 1.0))


def test_small_integer_types_are_counted_right():
    prior = fp.estimate(np.array([[255, 3]], np.uint8))
    assert prior.space.sizes == (256, 4)


def test_brackets_print():
    bracket = fp.Bracket(1.0, 2.0)
    assert f"{bracket:.2f}" == "2.00"  # the guaranteed side
    assert f"{bracket:i.2f}" == "[1.00, 2.00]"
    assert bracket.midpoint == 1.5


@pytest.mark.parametrize("name", ["channel.csv", Path("channel.csv")])
def test_the_name_of_a_file_is_no_array(name):
    for call in (fp.dp_level, fp.audit, lambda v: fp.mutual_information(np.eye(2), v)):
        with pytest.raises(fp.InvalidInput, match=r"[Rr]ead a file first"):
            call(name)


@pytest.mark.parametrize(
    "given",
    [fp.mechanisms.GaussianChannel(1.0, 1.0), object(), None, len],
    ids=["noise", "object", "None", "function"],
)
def test_what_is_no_finite_channel_is_refused_in_words(given):
    for measure in (fp.dp_level, fp.maximal_leakage, fp.audit):
        with pytest.raises(fp.InvalidInput, match="a finite channel or a matrix"):
            measure(given)


def test_arrays_that_cannot_be_written_are_arrays():
    channel, costs, levels = (
        np.array([[[0.75, 0.25], [0.25, 0.75]]] * 2),
        1.0 - np.eye(2),
        [0.1, 0.5],
    )
    fixed = [np.array(values) for values in (channel, costs, levels)]
    for values in fixed:
        values.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stack, metric, epsilons = fixed
        found = fp.distortion(stack, [0.5, 0.5], metric)
        assert np.array_equal(found, fp.distortion(channel, [0.5, 0.5], costs))
        for given in (stack, stack[0]):
            found = fp.hockey_stick(given, epsilons)
            assert np.array_equal(found, fp.hockey_stick(given.copy(), levels))


def test_views_of_memory_are_arrays():
    laws = np.array([[0.25, 0.75], [0.5, 0.5]])
    view = memoryview(laws)
    assert fp.Product(view) == fp.Product(laws)
    assert fp.ProductChannel(memoryview(np.stack([laws, laws]))) == fp.ProductChannel([laws, laws])
    codes = np.array([[0, 1], [1, 0]] * 50)
    released = fp.release(memoryview(codes), domain=[2, 2], epsilon=3.0, rng=1)
    assert np.array_equal(
        released.table, fp.release(codes, domain=[2, 2], epsilon=3.0, rng=1).table
    )


def test_lists_nested_without_end_are_refused():
    endless = [0.5]
    endless.append(endless)
    for measure in (fp.dp_level, fp.contraction_coefficient):
        with pytest.raises(fp.InvalidInput, match="rectangular"):
            measure(endless)
