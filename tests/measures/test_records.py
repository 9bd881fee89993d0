"""I(X_G; Y), leakage factors and leakage of groups: brute force over all groups of small cases."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.measures import chain_records, groups
from oracles import groups as oracle

RNG = np.random.default_rng(35)
COIN = np.array([[0.9, 0.1], [0.3, 0.7]])


def laws(rows, outputs):
    return RNG.dirichlet(np.ones(outputs), rows)


def some_zeros(array):
    array = np.where(RNG.random(array.shape) < 0.3, 0.0, array)
    array[..., 0] += 1e-3
    return array / array.sum(axis=-1, keepdims=True)


MIXED = [2, 3, 2]
TYPES = np.array([[0.1, 0.2, 0.0, 0.1], [0.1, 0.0, 0.2, 0], [0.1, 0.1, 0, 0], [0.1, 0, 0, 0]])
PRIORS = {
    "mixed": [fp.Dense(some_zeros(RNG.random(12)), MIXED) for _ in range(3)],
    "bits": [
        fp.Product([[0.3, 0.7], [0.9, 0.1], [0.5, 0.5], [1.0, 0.0]]),
        fp.Exchangeable.beta_binomial(4, 0.5, 0.8),
        fp.Exchangeable([0.0, 0.3, 0.2, 0.0, 0.5]),
        fp.Markov([0.2, 0.8], COIN, 4),
        fp.Markov([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], 4),
    ],
    "three": [
        fp.Exchangeable(TYPES),
        fp.Markov(laws(1, 3)[0], laws(3, 3), 3),
        fp.Product(list(laws(3, 3))),
    ],
}
CHANNELS = {
    "mixed": [
        fp.Channel(some_zeros(RNG.random((12, 4))), fp.Space(MIXED)),
        fp.ProductChannel([some_zeros(laws(m, 3)) for m in MIXED]),
        fp.QueryChannel(RNG.integers(0, 3, 12), laws(3, 4), MIXED),
    ],
    "bits": [
        fp.HammingChannel(4, 2, 0.7),
        fp.ProductChannel([laws(2, 3)] * 4),
        fp.ProductChannel([laws(2, k) for k in (1, 2, 3, 2)]),
        fp.ProductChannel([[[1.0], [1.0]]] * 4),
        fp.QueryChannel.count(4, laws(5, 3)),
        fp.QueryChannel.sum([[0, 1], [0, 2], [1, 3], [0, 1]], laws(8, 3)),
        fp.QueryChannel.histogram(4, 2, laws(5, 3)),
    ],
    "three": [
        fp.HammingChannel(3, 3, 1.0),
        fp.QueryChannel.sum([[0, 1, 2]] * 3, laws(7, 3)),
        fp.QueryChannel.sum([[0, 1, 2], [0, 0, 1], [2, 1, 0]], laws(6, 3)),
        fp.QueryChannel.histogram(3, 3, laws(10, 4)),
    ],
}
CASES = [
    pytest.param(prior, channel, id=f"{kind}-{i}-{j}")
    for kind, priors in PRIORS.items()
    for i, prior in enumerate(priors)
    for j, channel in enumerate(CHANNELS[kind])
]


def all_groups(n):
    return [g for k in range(1, n + 1) for g in itertools.combinations(range(n), k)]


def joint_of(channel, prior, group):
    labels = oracle.setting_labels(channel.space.sizes, group)
    return oracle.joint_law(channel.nearest_matrix().tolist(), prior.pmf().tolist(), labels)


@pytest.mark.parametrize(("prior", "channel"), CASES)
def test_every_group(prior, channel):
    for group in all_groups(channel.space.n):
        joint = joint_of(channel, prior, group)
        told = oracle.information(joint)
        assert fp.row_information(channel, prior, group) == pytest.approx(told, abs=1e-13)
        whole = oracle.entropy(joint)
        share = told / whole if whole > 1e-12 else 0.0
        assert fp.leakage_factor(channel, prior, rows=group) == pytest.approx(share, abs=1e-12)
        leaks = np.array(oracle.leakages(joint))
        found = fp.row_pml(channel, prior, group)
        assert (found >= leaks - 1e-15).all()
        assert found == pytest.approx(leaks, abs=1e-11)
        assert fp.pml_level(channel, prior, group) == pytest.approx(leaks.max(), abs=1e-11)
        y = int(leaks.argmax())
        assert fp.row_pml(channel, prior, group, y) == pytest.approx(leaks[y], abs=1e-11)


def test_one_record_is_a_group_of_one_and_all_records_are_the_database():
    prior, channel = PRIORS["bits"][1], CHANNELS["bits"][0]
    assert fp.row_information(channel, prior, 2) == fp.row_information(channel, prior, [2])
    whole = fp.row_information(channel, prior, [3, 1, 0, 2])
    assert whole == fp.mutual_information(channel, prior)


def ends(value):
    return (value.lower, value.upper) if isinstance(value, fp.Bracket) else (value, value)


@pytest.mark.parametrize("entries", [1 << 6, 1 << 8, 1 << 12])
@pytest.mark.parametrize("ratios", [5, 16, 2048])
@pytest.mark.parametrize(("m", "n"), [(2, 9), (3, 6)])
def test_windows_of_a_chain_contain_the_truth(monkeypatch, entries, ratios, m, n):
    """Short chains are forced into windows and merged messages, and compared with all outputs."""
    monkeypatch.setattr(groups, "_LISTED", 1)
    monkeypatch.setattr(chain_records, "_ENTRIES", entries)
    monkeypatch.setattr(chain_records, "_RATIOS", ratios)
    monkeypatch.setattr(chain_records, "_MESSAGES", 2 * ratios)
    rng = np.random.default_rng(entries + ratios)
    prior = fp.Markov(rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m), m), n)
    channel = fp.HammingChannel(n, m, 1.0)
    for group in [(0,), (n // 2,), (n - 1,), (1, n - 2), (2, 3), (0, 2, n - 1)]:
        truth = oracle.information(joint_of(channel, prior, group))
        lower, upper = ends(fp.row_information(channel, prior, group))
        assert lower - 1e-13 <= truth <= upper + 1e-13
        if m == 2 and ratios == 2048 and entries == 1 << 12:
            assert upper - lower < 1e-3  # 45 messages on each side


@pytest.mark.parametrize("messages", [3, 10, 40, 300])
@pytest.mark.parametrize("seed", range(6))
def test_merged_messages_about_more_values(monkeypatch, messages, seed):
    """Merged and divided messages about three and four values, zeros among them."""
    monkeypatch.setattr(groups, "_LISTED", 1)
    monkeypatch.setattr(chain_records, "_MESSAGES", messages)
    rng = np.random.default_rng(seed)
    m, n = (3, 6) if seed % 2 else (4, 4)
    transition = rng.dirichlet(np.full(m, 0.4), m) * (rng.random((m, m)) > 0.3 * (seed > 2))
    transition += 0.01 * np.eye(m)
    transition /= transition.sum(axis=1, keepdims=True)
    prior = fp.Markov(rng.dirichlet(np.ones(m)), transition, n)
    kernel = rng.dirichlet(np.full(3, 0.5), m) * (rng.random((m, 3)) > 0.2 * (seed > 2))
    kernel[:, 0] += 0.01
    channel = fp.ProductChannel([kernel / kernel.sum(axis=1, keepdims=True)] * n)
    for i in range(n):
        truth = oracle.information(joint_of(channel, prior, (i,)))
        for only_merged in (False, True):
            if only_merged:  # without the short window, which may be exact
                monkeypatch.setattr(chain_records, "_ENTRIES", 4 * m * messages**2)
            lower, upper = ends(fp.row_information(channel, prior, i))
            assert lower - 1e-13 <= truth <= upper + 1e-13


@pytest.mark.slow
def test_slow_chains_of_three_values():
    """Brackets that were 42 % wide with short windows only."""
    steps = [[0.97, 0.02, 0.01], [0.01, 0.98, 0.01], [0.02, 0.01, 0.97]]
    chain = fp.Markov([0.97, 0.02, 0.01], steps, 1000)
    told = fp.row_information(fp.HammingChannel(1000, 3, 1.0), chain, 500)
    assert told.upper - told.lower < 0.006 * told.lower


def test_long_chains_of_three_values():
    """Brackets that were 0.9 % wide with short windows only."""
    fast = fp.Markov([0.5, 0.3, 0.2], [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]], 1000)
    told = fp.row_information(fp.HammingChannel(1000, 3, 1.0), fast, 500)
    assert told.upper - told.lower < 0.001 * told.lower


def test_merged_messages_of_zeros(monkeypatch):
    monkeypatch.setattr(groups, "_LISTED", 1)
    monkeypatch.setattr(chain_records, "_RATIOS", 6)
    prior = fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.25, 0.75]], 8)
    channel = fp.ProductChannel([[[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]] * 8)
    for group in [(0,), (4,), (7,), (2, 6)]:
        truth = oracle.information(joint_of(channel, prior, group))
        lower, upper = ends(fp.row_information(channel, prior, group))
        assert lower - 1e-13 <= truth <= upper + 1e-13


def test_thousands_of_records():
    n = 3000
    channel = fp.HammingChannel(n, 2, 1.0)
    alone = fp.row_information(fp.HammingChannel(1, 2, 1.0), [0.3, 0.7], 0)
    product = fp.Product.iid([0.3, 0.7], n)
    assert fp.row_information(channel, product, [4, 2000]) == pytest.approx(2 * alone, rel=1e-14)
    # Records that are all equal: every output is a look at the same bit, which is then known.
    equal = np.zeros(n + 1)
    equal[[0, n]] = 0.25, 0.75
    bit = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    same = fp.Exchangeable(equal)
    assert fp.row_information(channel, same, 7) == pytest.approx(bit, rel=1e-12)
    assert fp.row_information(channel, same, [7, 8]) == pytest.approx(bit, rel=1e-12)
    # A chain of independent records is a product.
    chain = fp.Markov([0.3, 0.7], [[0.3, 0.7], [0.3, 0.7]], n)
    lower, upper = ends(fp.row_information(channel, chain, 1500))
    assert lower <= alone * (1 + 1e-9)
    assert upper >= alone * (1 - 1e-9)
    assert upper - lower < 1e-9
    lower, upper = ends(fp.row_information(channel, fp.Markov([0.2, 0.8], COIN, n), 1500))
    assert 0.0 < upper - lower < 1e-6
    # Counts: an exchangeable prior that is a product, and the product itself.
    kernel = np.linspace(0.2, 0.8, n + 1)
    count = fp.QueryChannel.count(n, np.stack([kernel, 1 - kernel], axis=1))
    by_type = product.by_type()
    for group in (3, [3, 4]):
        first = fp.row_information(count, product, group)
        assert first == pytest.approx(fp.row_information(count, by_type, group), rel=1e-6)
        assert first == pytest.approx(fp.row_information(count, chain, group), rel=1e-6)


@pytest.mark.parametrize("rows", [[], [0, 0], 4, -1, [0, 9], [0, [1]], 0.5, "worst", None])
def test_bad_groups(rows):
    for measure in (fp.row_information, fp.row_pml):
        with pytest.raises(fp.InvalidInput, match="row"):
            measure(CHANNELS["bits"][0], PRIORS["bits"][0], rows)


def representatives(n, group):
    """One output for every number of ones outside the group, and every output of the group."""
    rest = [i for i in range(n) if i not in group]
    for ones in range(len(rest) + 1):
        for own in itertools.product((0, 1), repeat=len(group)):
            y = np.zeros(n, dtype=int)
            y[rest[:ones]] = 1
            y[list(group)] = own
            yield y


@pytest.mark.parametrize("group", [(3,), (0, 7)])
def test_levels_of_exchangeable_records_are_found_on_types(group):
    n = 40
    channel = fp.HammingChannel(n, 2, 0.7)
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    truth = max(fp.row_pml(channel, prior, group, y=y) for y in representatives(n, group))
    found = fp.pml_level(channel, prior, group if len(group) > 1 else group[0])
    assert truth - 1e-9 <= found <= truth + 1e-9


def test_outputs_that_underflow_widen_the_level_to_a_bracket():
    n = 4_000
    channel, prior = fp.HammingChannel(n, 2, 1.0), fp.Exchangeable.beta_binomial(n, 2.0, 3.0)
    found = fp.pml_level(channel, prior, [0, 1])
    shown = max(fp.row_pml(channel, prior, [0, 1], y=np.full(n, v)) for v in (0, 1))
    # The outputs that leak most are too rare for doubles, so that the lower bound is below them.
    assert found.lower <= shown <= found.upper
    assert found.upper == pytest.approx(math.log(5.0), abs=1e-9)  # -ln P(x_0 = x_1 = 1)
    alone = fp.pml_level(channel, prior, 0)
    assert fp.row_pml(channel, prior, 0, y=np.ones(n, dtype=int)) <= alone <= -math.log(0.4) + 1e-9
    about = fp.pml_level(channel, prior, attribute=lambda value: value, row=0)
    assert about.lower <= alone <= about.upper + 1e-12


def test_the_leakage_factor_of_all_records_of_a_chain():
    chain = fp.Markov([0.2, 0.8], COIN, 1_000)
    channel = fp.HammingChannel(1_000, 2, 1.0)
    found = fp.leakage_factor(channel, chain, rows=range(1_000))
    whole = fp.leakage_factor(channel, chain)
    assert found.lower == pytest.approx(whole.lower)
    assert found.upper == pytest.approx(whole.upper)
