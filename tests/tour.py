"""A tour of the package on random input: it calls every kernel."""

import os

import numpy as np

import fastpriv as fp


def tour(folder, seed=0):
    """Call what has kernels of its own; a few files are written to a folder."""
    _structures(folder, seed)
    _stacks(np.random.default_rng(seed))
    _programs(np.random.default_rng(seed))
    _searches(np.random.default_rng(seed))


def _structures(folder, seed):
    """Call the measures of every structure of channels and priors."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(8), 8)
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3)
    types = fp.Exchangeable([0.1, 0.2, 0.3, 0.4])
    three = fp.Exchangeable({(2, 0, 0): 0.5, (1, 1, 0): 0.25, (0, 1, 1): 0.25})
    priors = [fp.Uniform(3, 2), fp.Dense(W[0], [2] * 3), types, chain]
    channels = [
        fp.HammingChannel(3, 2, 1.0),
        fp.Channel(W, [2] * 3),
        fp.ProductChannel([[[0.5, 0.5]] * 2] * 3),
        fp.QueryChannel(np.arange(8), W, [2] * 3),
    ]
    for prior in priors:
        e_i = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.1)
        prior.entropy(), prior.min_entropy(), prior.sample(2), prior.epsilon_hat()
        fp.shell_profile(prior, 0), prior.log_prob([[0, 0, 1]])
        for channel in [*channels, e_i]:
            fp.dp_level(channel), fp.identifiability_level(channel, prior)
            fp.mutual_information(channel, prior)
            fp.pml(channel, prior), fp.pml(channel, prior, y=0), fp.pml_level(channel, prior)
            fp.row_pml(channel, prior, 1), fp.row_pml(channel, prior, 1, y=0)
            fp.conditional_pml(channel, prior, {0: 1}), fp.worst_leakage_factor(channel, prior)
            fp.maximal_leakage(channel), fp.leakage_capacity(channel)
            channel.column_maxima(), channel.column_minima()
            channel.output(prior).log_prob(np.zeros((1, channel.output_space.n), int))
            channel.output(prior).entropy()
            if "Query" not in repr(channel):
                fp.distortion(channel, prior)
    fp.HammingChannel(2, 3, 1.0).output(three), fp.Space([2, 3]).shell(0, 2), three.entropy()
    big = fp.Channel(rng.dirichlet(np.ones(512), 512))
    fp.solve_pd_mip(priors[1], 0.3)
    fp.pml(big, np.full(512, 1 / 512)), fp.worst_leakage_factor(big, np.full(512, 1 / 512))
    fp.leakage_capacity(big), fp.pml_level(channels[1], fp.PriorSet.bernoulli_interval(3, 0.2))
    fp.dp_level(big), fp.mutual_information(big, np.full(512, 1 / 512))
    for channel in [*channels, e_i, big, W[:2], W[None]]:
        fp.channel_capacity(channel), fp.capacity_prior(channel)
    fp.design_mapping(W / 8, 1 - np.eye(8), 0.1), fp.design_mapping(W[:2] / 2, 1 - np.eye(8), 0.1)
    for channel in [*channels, e_i, big, W[:2]]:
        fp.hockey_stick(channel, [0.1, 1.0]), fp.hockey_stick_epsilon(channel, 0.1)
        fp.singles_out(channel)
    for channel in [*channels, e_i, W, W[:2], fp.Channel(W[:6], [2, 3])]:
        fp.individual_capacity(channel, time_limit=1.0)
    fp.group_capacity(channels[1], 2), fp.individual_capacity(fp.QueryChannel.count(7, W))
    sharp = fp.Channel(np.random.default_rng(1).dirichlet(np.full(8, 0.3), 75), [3, 5, 5])
    fp.individual_capacity(sharp, time_limit=0.5)  # a short limit, for the list of cliques
    fp.discloses(W, np.arange(8)), [fp.disclosure_threshold(prior) for prior in priors]
    table = os.path.join(folder, "table.csv")
    with open(table, "w") as stream:
        stream.write("c\nx\ny\nx\n")
    released = fp.release(table, domain={"c": ["x", "y"]}, epsilon=1.0, out=table + ".csv")
    fp.estimate_frequencies(released)
    fp.row_pml(channels[0], fp.Markov([1, 1e-200], [[1, 1e-200]] * 2, 3), 1, y=0)
    fp.maximal_correlation(rng.dirichlet(np.ones(20), 20), np.full(20, 0.05))
    fp.threshold_query_leakage(9, 3, 0.5), fp.implications(1.0, "dp", prior=chain)
    for channel in [*channels, e_i, W]:
        fp.contraction_coefficient(channel), fp.sdpi_constant(channel, W[0])
        fp.maximal_correlation(channel, W[0])
    M = fp.mechanisms
    for channel in [M.binary_symmetric([0, 1], M.binary_symmetric_flip(0.1), [2]), *channels[1:]]:
        fp.is_data_independent(channel), fp.composition_bound(fp.compose(channel, channel))
        fp.is_weakly_symmetric(channel), fp.cross_capacity(channel, 3)
    fp.data_independent_bound(channels[0]), M.exponential_rate(3, 0.1)
    M.GaussianChannel(0.5, 1.0).capacity(), M.GaussianChannel(2.0, 1.0).capacity()
    fp.balance_function(channels[1], [0.5, 1.5], time_limit=0.1)
    (
        fp.mechanisms.MaxEntropyNoise(2, 3.0).sample(9),
        fp.mechanisms.GeometricCount(3, 1.0).sample([1]),
    )
    fp.mechanisms.laplace_count_leakage(3, 0.1, 0.5, [0.2])
    optimum, tilted = fp.solve_pd_dp(types, 0.6).channel, fp.TiltedChannel(chain, 1.0)
    rows, many = np.zeros((2, 3), dtype=int), fp.HammingChannel(3, 20000, 1.0)
    rows.flags.writeable = False
    for channel in [*channels, e_i, optimum, tilted, many, fp.TiltedChannel(types, 1.0)]:
        fp.realised_level(channel)
        for dtype in (bool, "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            channel.sample(rows.astype(dtype, copy=False)), channel.sample(rows.astype(dtype), 1)
    fp.accounting.PrivacyProfile.of(channels[0]).self_compose(9).epsilon(1e-6)
    gaussian = fp.accounting.PrivacyProfile.gaussian
    gaussian(1.0, 0.01).self_compose(100).epsilon(1e-6)
    gaussian(1.0, 1e-5).self_compose(3).delta(1e-4)
    gaussian(0.5, 0.002).self_compose(9).epsilon(1e-6)
    gaussian(20.0, 0.01).self_compose(10**6).epsilon(1e-6)
    fp.accounting.PrivacyProfile.laplace(1.0, 0.1).self_compose(100).epsilon(1e-6)
    fp.accounting.PrivacyProfile.discrete_gaussian(300.0).self_compose(10_000).epsilon(1e-6)
    fp.contraction_coefficient(rng.dirichlet(np.ones(4), 70))


def _stacks(rng):
    """Call the measures of many matrices at once, and gains."""
    W, p = rng.dirichlet(np.ones(4), (5, 4)), rng.dirichlet(np.ones(4))
    fp.hyper(W[0], p), fp.refines(W[0], W[0] @ W[1])
    fp.dp_level(W), fp.identifiability_level(W, p), fp.mutual_information(W, p)
    fp.leakage_factor(W, p), fp.worst_leakage_factor(W, p), fp.distortion(W, p)
    fp.g_leakage(W, p), fp.g_leakage(W, p, rng.random((3, 4))), fp.g_leakage(W[0], p)
    fp.dp_level([[5e-324, 1.0], [1.0, 0.0]]), fp.dp_level([[5e-324, 1.0], [0.5, 0.5]])
    fp.dp_level(fp.Channel([[5e-324, 1.0], *3 * [[0.5, 0.5]]], [2, 2]))
    fp.UnaryChannel(9, 1.0).sample([[3], [4]], rng), fp.SubsetChannel(9, 1.0).sample([[3]], rng)
    fp.HammingChannel(17, 2, 1.0).output(fp.Dense(rng.dirichlet(np.ones(2**17)), [2] * 17)).pmf()
    fp.accounting.random_allocation(2.0, 10).epsilon(1e-5)
    fp.accounting.random_allocation(0.4, 1000).epsilon(1e-5)


def _programs(rng):
    """Call the programs with an interior point, and those of a metric."""
    apart = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    for solver in ("interior", "highs"):
        options = {"metric": apart, "neighbours": apart, "solver": solver}
        fp.solve_pd_dp(rng.dirichlet(np.ones(12)), 0.3, **options)
    fp.solve_pd_dp(fp.Dense(rng.dirichlet(np.ones(16)), [2] * 4), 0.3, solver="interior")
    fp.solve_pd_dp(fp.Dense(rng.dirichlet(np.ones(8)), [2] * 3), 0.3, solver="first-order", gap=0.1)
    fp.solve_pd_dp(fp.Dense(rng.dirichlet(np.ones(128)), [2] * 7), 0.3, gap=0.5)  # dense blocks
    points = rng.random((45, 8))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    fp.solve_pd_dp(np.full(45, 1 / 45), 1.0, metric=apart, neighbours=apart, gap=0.1)


def _searches(rng):
    """Call the searches over priors and selections of rows."""
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 40)
    fp.pml_level(fp.HammingChannel(40, 2, 1.0), chain)
    fp.audit(fp.HammingChannel(3, 2, 1.0), fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3))
    W = rng.dirichlet(np.full(4, 0.3), 729)
    for sizes, b in (([2, 2], 1.0), ([3, 3], 1.7)):
        channel = fp.Channel(W[: np.prod(sizes)], sizes)
        fp.constrained_capacity(channel, b, gap=1e-3, time_limit=3.0)
    for sizes in ([3, 9], [3, 3, 3], [9, 9, 9]):
        fp.individual_capacity(fp.Channel(W[: np.prod(sizes)], sizes), time_limit=3.0)
    count = fp.QueryChannel.count(7, rng.dirichlet(np.ones(8), 8))
    fp.individual_capacity(count, fp.PriorSet.bernoulli_interval(7, 0.2), time_limit=1.0)
