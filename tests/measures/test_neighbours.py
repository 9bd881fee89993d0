"""Levels over other neighbours and groups: every pair of databases, one by one."""

import math

import mpmath
import numpy as np
import pytest

import fastpriv as fp

RNG = np.random.default_rng(37)
SIZES = [2, 3, 2]


def laws(rows, outputs):
    return RNG.dirichlet(np.ones(outputs), rows)


def channels():
    zeros = np.where(RNG.random((12, 4)) < 0.1, 0.0, RNG.random((12, 4)))
    zeros[:, 0] += 0.01
    return [
        fp.Channel(laws(12, 4), fp.Space(SIZES)),
        fp.Channel(zeros / zeros.sum(axis=1, keepdims=True), fp.Space(SIZES)),
        fp.ProductChannel([laws(m, k) for k, m in zip((3, 3, 2), SIZES, strict=True)]),
        fp.ProductChannel([np.eye(2), laws(2, 2), laws(2, 2)]),
        fp.QueryChannel(RNG.integers(0, 3, 12), laws(3, 4), SIZES),
        fp.QueryChannel.sum([[0, 1], [0, 1, 2], [0, 2]], laws(6, 4)),
        fp.QueryChannel.sum([[0, 1, 1]] * 3, laws(4, 3)),
        fp.QueryChannel.count(4, laws(5, 3)),
        fp.QueryChannel.histogram(3, 3, laws(10, 3)),
        fp.HammingChannel(3, 3, 0.5),
        fp.PosteriorChannel(fp.Product.iid([0.4, 0.6], 3), 1.5),
        fp.TiltedChannel(fp.Dense(RNG.dirichlet(np.ones(12)), SIZES), 1.0),
    ]


CHANNELS = channels()


def changed(space):
    rows = space.rows(np.arange(space.size))
    return (rows[:, None] != rows[None]).sum(axis=2).astype(float)


def related(distance):
    return [(x, z, d) for (x, z), d in np.ndenumerate(distance) if x != z and d < math.inf]


def level(matrix, distance):
    worst = 0.0
    for x, z, d in related(distance):
        for a, b in zip(matrix[x], matrix[z], strict=True):
            if a > 0.0:
                worst = max(worst, math.log(a / b) / d if b > 0.0 else math.inf)
    return worst


def excess(matrix, distance, epsilon):
    pairs = related(distance)
    sums = [np.maximum(matrix[x] - math.exp(epsilon * d) * matrix[z], 0).sum() for x, z, d in pairs]
    return min(max([0.0, *sums]), 1.0)


def close_above(found, truth):
    assert found >= truth - 1e-13 * (1.0 + abs(truth)) or found == truth
    assert found == pytest.approx(truth, abs=1e-10)


def compare(channel, prior, distance, **given):
    matrix = channel.nearest_matrix()
    close_above(fp.dp_level(channel, **given), level(matrix, distance))
    for epsilon in (0.0, 0.4):
        delta = excess(matrix, distance, epsilon)
        close_above(fp.hockey_stick(channel, epsilon, **given), delta)
        if delta > 1e-9:
            back = fp.hockey_stick_epsilon(channel, min(delta + 1e-12, 1.0), **given)
            assert back <= epsilon + 1e-9
            assert excess(matrix, distance, back) <= delta + 2e-12
    joint = prior.pmf()[:, None] * matrix
    close_above(fp.identifiability_level(channel, prior, **given), level(joint, distance))


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: type(channel).__name__)
def test_groups_graphs_and_distances(channel):
    size, apart = channel.space.size, changed(channel.space)
    dense = fp.Dense(RNG.dirichlet(np.ones(size)), channel.space)
    product = fp.Product([RNG.dirichlet(np.ones(m)) for m in channel.space.sizes])
    for group in (1, 2, 3, 9):
        near = np.where(apart <= group, 1.0, math.inf)
        for prior in (dense, product):
            compare(channel, prior, near, group=group)
        compare(channel, dense, near, neighbours=apart, group=group)
        profile = fp.accounting.PrivacyProfile.of(channel, group=group)
        delta = profile.delta(0.4)
        assert delta.lower - 1e-9 <= excess(channel.nearest_matrix(), near, 0.4) <= delta.upper
    graph = RNG.random((size, size)) < 0.3
    graph = (graph | graph.T) & ~np.eye(size, dtype=bool)
    edges = np.where(graph, 1.0, math.inf)
    for form in (graph, graph.astype(int), graph.astype(float), np.argwhere(graph)):
        compare(channel, dense, edges, neighbours=form)
    metric = RNG.random((size, size)) + 0.1
    metric = metric + metric.T
    np.fill_diagonal(metric, 0.0)
    compare(channel, dense, metric, neighbours=metric)


def test_databases_of_probability_zero():
    channel, graph = laws(3, 2), [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert fp.identifiability_level(channel, [0.5, 0.5, 0.0], neighbours=graph) == math.inf
    apart = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    found = fp.identifiability_level(channel, [0.5, 0.0, 0.5], neighbours=apart)
    assert found == pytest.approx(fp.dp_level(channel[[0, 2]]), abs=1e-12)


def test_nodes_of_a_graph():
    """Wu-Xia-He 2020, Section 9.1: neighbours in one edge, or in all edges of one node."""
    ends = [(0, 1), (0, 2), (1, 2)]  # a database has a bit for each edge of three nodes
    space = fp.Space.hamming(3, 2)
    rows = space.rows(np.arange(8))
    differs = rows[:, None] != rows[None]
    nodes = [[node in edge for edge in ends] for node in range(3)]
    node = np.any([~(differs & ~np.array(own)).any(axis=2) for own in nodes], axis=0)
    np.fill_diagonal(node, False)
    channel = fp.HammingChannel(3, 2, 0.5)
    assert fp.dp_level(channel) == 0.5
    assert fp.dp_level(channel, neighbours=node) == pytest.approx(1.0, abs=1e-12)
    profile = fp.accounting.PrivacyProfile.of(channel, neighbours=node)
    assert profile.epsilon(0.0).upper == pytest.approx(1.0, abs=1e-9)


def test_thousands_of_records():
    assert fp.dp_level(fp.HammingChannel(10**6, 2, 0.001), group=1000) == pytest.approx(1.0)
    n = 2000
    share = np.linspace(0.2, 0.8, n + 1)
    count = fp.QueryChannel.count(n, np.stack([share, 1 - share], axis=1))
    assert fp.dp_level(count, group=3) == pytest.approx(math.log(share[3] / share[0]), abs=1e-12)
    iid = fp.Product.iid([0.3, 0.7], 1000)
    found = fp.identifiability_level(fp.HammingChannel(1000, 2, 0.1), iid, group=10)
    assert found == pytest.approx(10 * (0.1 + math.log(7 / 3)), abs=1e-9)
    mixed = fp.ProductChannel([np.eye(2)] + [laws(2, 2) for _ in range(50)])
    assert fp.dp_level(mixed, group=2) == math.inf


@pytest.mark.parametrize(
    "given",
    [
        {"group": 0},
        {"group": 1.5},
        {"neighbours": [[0, 5]]},
        {"neighbours": [[0, 1, 1], [0, 0, 1], [1, 1, 0]]},
        {"neighbours": [[0, 2, 0], [2, 0, 1], [0, 1, 0]]},
        {"neighbours": [[0, 0.5, 1], [0.5, 0, 1], [1, 1, 0]], "group": 2},
        {"neighbours": "graph"},
        {"neighbours": [[0, math.nan, 1], [math.nan, 0, 1], [1, 1, 0]]},
    ],
)
def test_bad_neighbours(given):
    channel = laws(3, 2)
    for measure in (
        fp.dp_level,
        lambda W, **more: fp.hockey_stick(W, 0.5, **more),
        lambda W, **more: fp.hockey_stick_epsilon(W, 0.1, **more),
        lambda W, **more: fp.identifiability_level(W, [0.2, 0.3, 0.5], **more),
        fp.accounting.PrivacyProfile.of,
    ):
        with pytest.raises(fp.InvalidInput, match=r"group|neighbours|distances"):
            measure(channel, **given)


def test_profiles_need_a_graph_and_keep_it():
    channel = laws(3, 2)
    with pytest.raises(fp.InvalidInput, match="graph"):
        fp.accounting.PrivacyProfile.of(channel, neighbours=[[0, 0.5, 2], [0.5, 0, 1], [2, 1, 0]])
    path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    profile = fp.accounting.PrivacyProfile.of(channel, neighbours=path)
    again = fp.accounting.PrivacyProfile.from_json(profile.to_json())
    assert again.delta(0.1).upper == pytest.approx(profile.delta(0.1).upper, rel=1e-9)
    with pytest.raises(fp.InvalidInput, match="stack"):
        fp.dp_level([channel, channel], group=2)


@pytest.mark.parametrize("given", [{"neighbours": [[0, 1]]}, {"group": 2}])
def test_one_matrix_takes_no_out(given):
    for channel in (fp.Channel(laws(4, 2), [2, 2]), fp.HammingChannel(2, 2, 1.0)):
        with pytest.raises(fp.InvalidInput, match="out is for a stack"):
            fp.dp_level(channel, out=np.zeros(1), **given)
        with pytest.raises(fp.InvalidInput, match="out is for a stack"):
            fp.identifiability_level(channel, fp.Uniform(2, 2), out=np.zeros(1), **given)


def test_fixed_mechanisms_on_groups_of_unlike_records():
    """The worst pair of one channel is not numbered as that of the other, and both are composed."""
    weak, strong = [[0.6, 0.4], [0.45, 0.55]], [[0.95, 0.05], [0.1, 0.9]]
    both = fp.ProductChannel([weak, weak, strong]), fp.ProductChannel([strong, weak, weak])
    W = np.einsum("xa,xb->xab", *(channel.matrix() for channel in both)).reshape(8, -1)
    first, second = (fp.accounting.PrivacyProfile.of(channel, group=2) for channel in both)
    x, z = np.nonzero([[0 < (a ^ b).bit_count() <= 2 for b in range(8)] for a in range(8)])
    for epsilon in (0.0, 0.5, 2.0):
        truth = np.maximum(W[x] - math.exp(epsilon) * W[z], 0.0).sum(axis=1).max()
        found = first.compose(second).delta(epsilon, adaptive=False)
        assert found.lower <= truth <= found.upper


def test_a_profile_that_is_read_has_its_own_neighbours():
    channel = [[0.5, 0.5], [0.4, 0.6], [0.1, 0.9], [0.9, 0.1]]
    profile = fp.accounting.PrivacyProfile.of(channel, neighbours=[[0, 1]])
    again = fp.accounting.PrivacyProfile.from_json(profile.to_json())
    assert again.delta(0.0).upper == pytest.approx(0.1) == again.delta(0.0).lower


def response_excess(k, m, epsilon, t):
    """Sum over the numbers of outputs that agree with the one database, and with the other."""
    with mpmath.workdps(40):
        total, rare = mpmath.mpf(0), mpmath.exp(-mpmath.mpf(epsilon))
        for u in range(k + 1):
            for v in range(k + 1 - u):
                excess = 1 - mpmath.exp(t - mpmath.mpf(epsilon) * (u - v))
                if excess > 0 and (m > 2 or u + v == k):
                    ways = math.comb(k, u) * math.comb(k - u, v) * (m - 2) ** (k - u - v)
                    total += ways * rare ** (k - u) * excess
        return total / (1 + (m - 1) * rare) ** k


@pytest.mark.parametrize(
    ("k", "m", "epsilon", "t"),
    [
        (50, 2, 0.1, 1.0),
        (50, 3, 0.1, 0.0),
        (40, 5, 0.5, 5.0),
        (30, 2, 3.0, 60.0),
        (50, 2, 0.1, 4.9999),
        (60, 4, 1e-9, 1e-9),
        (20, 3, 740.0, 14799.0),
    ],
)
def test_groups_under_randomised_response(k, m, epsilon, t):
    truth = response_excess(k, m, epsilon, t)
    channel = fp.HammingChannel(10_000, m, epsilon)
    found = fp.hockey_stick(channel, t, group=k)
    assert truth <= found <= truth * (1 + 1e-11)
    delta = fp.accounting.PrivacyProfile.of(channel, group=k).delta(t)
    assert delta.lower <= truth <= delta.upper <= delta.lower + 1e-9 * truth + 1e-12
    back = fp.hockey_stick_epsilon(channel, found, group=k)
    assert back == pytest.approx(t, rel=1e-3)
    assert response_excess(k, m, epsilon, back) <= found
    assert fp.hockey_stick(channel, k * epsilon * (1 + 1e-15), group=k) == 0.0


def test_groups_of_unlike_records_under_randomised_response():
    """The records with the fewest values reveal most, and a record of one value nothing."""
    channel = fp.HammingChannel(5, [2, 4, 3, 2, 1], 0.7)
    matrix, apart = channel.nearest_matrix(), changed(channel.space)
    for group in (2, 3, 4, 9):
        near = np.where(apart <= group, 1.0, math.inf)
        profile = fp.accounting.PrivacyProfile.of(channel, group=group)
        for epsilon in (0.0, 0.3, 0.9, 1.5):
            truth = excess(matrix, near, epsilon)
            close_above(fp.hockey_stick(channel, epsilon, group=group), truth)
            delta = profile.delta(epsilon)
            assert delta.lower <= truth + 1e-15 <= delta.upper + 1e-15
            assert delta.upper - delta.lower < 1e-10
    silent = fp.HammingChannel(20, [2] * 10 + [3] * 10, 0.0)
    assert fp.accounting.PrivacyProfile.of(silent, group=12).delta(0.0).lower == 0.0
    assert fp.hockey_stick(fp.HammingChannel(3, 1, 0.5), 0.0, group=2) == 0.0


def test_thousands_under_randomised_response():
    """Groups are compositions of single records."""
    group = fp.hockey_stick_epsilon(fp.HammingChannel(10**5, 2, 0.01), 1e-6, group=3000)
    composed = fp.accounting.PrivacyProfile.randomised_response(2, 0.01).self_compose(3000)
    assert group == pytest.approx(composed.epsilon(1e-6).upper, abs=1e-8)
    with pytest.raises(fp.TooLarge, match="smaller group"):
        fp.hockey_stick(fp.HammingChannel(10**6, 2, 0.01), 0.1, group=10**6)


def sparse_law(size, zeros):
    law = RNG.random(size) + 0.05
    if zeros and RNG.random() < 0.5:
        law[RNG.integers(size)] = 0.0
    return law / law.sum()


def query_cases(zeros):
    def kernel(answers):
        return [sparse_law(3, zeros) for _ in range(answers)]

    return [
        fp.QueryChannel.count(4, kernel(5)),
        fp.QueryChannel.histogram(3, 3, kernel(10)),
        fp.QueryChannel.sum([[0, 1], [0, 2, 1], [1, 1]], kernel(5)),
        fp.QueryChannel.sum([[0, 2, 2]] * 3, kernel(7)),
        fp.QueryChannel.sum([[0, 1], [0, 1], [2, 0], [0, 2]], kernel(7)),
    ]


def prior_cases(sizes, zeros):
    n, m = len(sizes), sizes[0]
    yield fp.Product([sparse_law(size, zeros) for size in sizes])
    if len(set(sizes)) == 1:
        yield fp.Product.iid(sparse_law(m, zeros), n)
        yield fp.Markov(sparse_law(m, zeros), [sparse_law(m, zeros) for _ in range(m)], n)
        weights = RNG.random((n + 1,) * (m - 1)) * (RNG.random((n + 1,) * (m - 1)) > 0.3 * zeros)
        weights[sum(np.indices(weights.shape)) > n] = 0.0
        weights.flat[0] += 0.1
        yield fp.Exchangeable(weights / weights.sum())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("group", [2, 3, 9])
def test_identifiability_of_groups_by_answers(group, zeros):
    """Counts, sums and histograms in the structure of the prior, against all pairs."""
    for channel in query_cases(zeros):
        near = np.where(changed(channel.space) <= group, 1.0, math.inf)
        for prior in prior_cases(channel.space.sizes, zeros):
            truth = level(prior.pmf()[:, None] * channel.nearest_matrix(), near)
            close_above(fp.identifiability_level(channel, prior, group=group), truth)


def test_identifiability_of_groups_of_thousands():
    n = 3000
    share = np.linspace(0.2, 0.8, n + 1)
    channel = fp.QueryChannel.count(n, np.stack([share, 1 - share], axis=1))
    iid = fp.Product.iid([0.3, 0.7], n)
    found = fp.identifiability_level(channel, iid, group=2)
    # Two ones become zeros where the ratio of outputs is largest: at the counts 0 and 2.
    best = 2 * math.log(7 / 3) + max(math.log(share[2] / share[0]), 0.0)
    assert found == pytest.approx(best, abs=1e-10)
    # A chain that forgets at once is a product; weights of an iid prior are binomial.
    chain = fp.Markov([0.3, 0.7], [[0.3, 0.7]] * 2, 400)
    small = fp.QueryChannel.count(400, channel.kernel.matrix[:401])
    iid = fp.Product.iid([0.3, 0.7], 400)
    truth = fp.identifiability_level(small, iid, group=3)
    assert fp.identifiability_level(small, chain, group=3) == pytest.approx(truth, abs=1e-10)
    weights = [math.comb(400, k) * 0.7**k * 0.3 ** (400 - k) for k in range(401)]
    counted = fp.Exchangeable(np.array(weights) / math.fsum(weights))
    assert fp.identifiability_level(small, counted, group=3) == pytest.approx(truth, abs=1e-9)
    beta = fp.identifiability_level(channel, fp.Exchangeable.beta_binomial(n, 1, 1), group=2)
    assert beta == pytest.approx(math.log(n * (n - 1) / 2) + math.log(share[2] / share[0]), abs=0.1)
