"""Levels for a distortion and curves of them: inverses of the programs, ends, executors, limits."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastpriv as fp
from cases import law


@pytest.mark.parametrize("prior", [fp.Dense(law(np.random.default_rng(5), 8), [2] * 3)])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_privacy_level_inverts_the_programs(prior, share):
    top = fp.solve_pd_dp(prior, 0.0).value
    cost = share * top
    bracket = fp.privacy_level(prior, cost, "dp")
    assert bracket.width < 1e-4
    assert fp.solve_pd_dp(prior, bracket.upper * (1 + 1e-9) + 1e-12).bound <= cost * (1 + 1e-9)
    if bracket.lower > 1e-6:
        assert fp.solve_pd_dp(prior, bracket.lower * (1 - 1e-4)).value >= cost
    level = fp.privacy_level(prior, cost, "identifiability")
    assert level.lower >= prior.epsilon_x() * (1 - 1e-12)
    assert bracket.lower <= level.upper  # identifiability e implies DP optimum below it


@pytest.mark.parametrize("notion", ["dp", "identifiability", "mutual-information", "pml"])
def test_privacy_level_to_a_given_width(notion):
    prior = fp.Dense([0.35, 0.15, 0.3, 0.2], [2, 2])
    wide, usual, narrow = (
        fp.privacy_level(prior, 0.75, notion, gap=gap) for gap in (1e-2, None, 1e-9)
    )
    assert narrow.width <= 1e-9 * (1 + narrow.upper)
    assert usual.width <= 1e-6 * (1 + usual.upper)
    assert wide.width <= 1e-2 * (1 + wide.upper)
    for bracket in (wide, usual):
        assert bracket.lower <= narrow.upper
        assert bracket.upper >= narrow.lower
    for wrong in (0.0, -1.0, 2.0, math.nan, "narrow"):
        with pytest.raises(fp.InvalidInput, match="gap"):
            fp.privacy_level(prior, 0.75, notion, gap=wrong)


@pytest.mark.parametrize("notion", ["dp", "identifiability", "mutual-information"])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-8])
def test_the_gap_is_a_width_in_nats(notion, gap):
    chain = fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 3)  # levels between 0.7 and 2.6
    found = fp.privacy_level(chain, 0.3, notion, gap=gap)
    assert found.lower < found.upper
    assert found.upper - found.lower <= gap


def test_theorem_upper_is_at_most_eps_tilde_beyond_its_distortion():
    prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    curve = fp.tradeoff_curve(prior, ["identifiability", "dp"], [0.2, 0.4, 0.7, 0.75])
    tilde, spread = prior.epsilon_tilde(), prior.epsilon_x()
    plain = fp.h_inverse(curve.distortions, 2, 2)
    assert list(plain >= tilde) == [True, True, True, False]
    top = curve.theorem_upper["identifiability"]
    assert top[:3] == pytest.approx(plain[:3])
    assert top[3] == pytest.approx(min(plain[3] + spread, tilde))
    assert top[3] < plain[3] + spread
    assert (curve.lower["identifiability"] <= top * (1 + 1e-12)).all()
    # Main Result 1 of the poster: the two optima differ by at most eps_X, at every distortion.
    apart = curve.upper["identifiability"] - curve.lower["dp"]
    assert (apart <= spread + 1e-5).all()
    assert (curve.upper["identifiability"] >= curve.lower["dp"]).all()


def test_privacy_level_ends():
    prior = fp.Product.iid([0.6, 0.4], 4)
    assert fp.privacy_level(prior, 0.0, "dp") == fp.Bracket(math.inf, math.inf)
    assert prior.entropy() in fp.privacy_level(prior, 0.0, "mutual-information")
    assert fp.privacy_level(prior, 1.6, "dp") == fp.Bracket(0.0, 0.0)
    least = prior.epsilon_x()
    level = fp.privacy_level(prior, 4.0, "identifiability")
    assert level.lower < level.upper == least <= level.lower * (1.0 + 1e-14)
    exact = fp.privacy_level(prior, 0.5, "mutual-information")
    e_i = fp.PosteriorChannel(prior, fp.h_inverse(0.5, 4, 2))
    assert fp.mutual_information(e_i, prior) in exact
    zeros = fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2])
    assert fp.privacy_level(zeros, 0.1, "identifiability").lower == math.inf


def test_curve_tables_and_plot(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    curve = fp.tradeoff_curve(prior, distortions=[0.1, 0.3, 0.8], progress=True)
    for notion in ("dp", "identifiability"):
        assert np.all(curve.theorem_lower[notion] <= curve.upper[notion] * (1 + 1e-9))
        assert np.all(curve.lower[notion] <= curve.theorem_upper[notion] * (1 + 1e-9))
        assert np.all(np.diff(curve.upper[notion]) <= 1e-9)
    table = curve.to_csv(tmp_path / "curve.csv").splitlines()
    assert len(table) == 4
    assert table[0].startswith("distortion,dp lower,dp upper,dp theorem lower")
    assert (tmp_path / "curve.csv").read_text().splitlines() == table
    assert json.loads(curve.to_json(tmp_path / "curve.json"))["distortion"] == [0.1, 0.3, 0.8]
    ax = curve.plot()
    assert ax.get_xlabel() == "expected number of changed records"
    ax.figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5000
    matplotlib.pyplot.close("all")


def test_curve_on_an_executor():
    prior = fp.Exchangeable.beta_binomial(3, 0.5, 0.8)
    plain = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5])
    with ThreadPoolExecutor(2) as executor:
        spread = fp.tradeoff_curve(prior, "dp", [0.2, 0.5], executor=executor)
    assert np.array_equal(plain.upper["dp"], spread.upper["dp"])


@pytest.mark.filterwarnings("ignore")
def test_curve_on_a_dask_cluster():
    distributed = pytest.importorskip("distributed")
    prior = fp.Exchangeable.beta_binomial(3, 0.5, 0.8)
    plain = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5])
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5], executor=client.get_executor())
        given = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5], executor=client)
    assert np.array_equal(plain.upper["dp"], spread.upper["dp"])
    assert np.array_equal(plain.upper["dp"], given.upper["dp"])


@pytest.mark.slow  # two processes that import the package
@pytest.mark.filterwarnings("ignore")
def test_curve_on_a_dask_cluster_of_two_processes():
    distributed = pytest.importorskip("distributed")
    prior = fp.Exchangeable.beta_binomial(12, 0.5, 0.8)
    distortions = [0.5, 1.0, 1.5, 2.0]
    plain = fp.tradeoff_curve(prior, ["dp"], distortions)  # points share their programs
    with ThreadPoolExecutor(2) as executor:
        alone = fp.tradeoff_curve(prior, ["dp"], distortions, executor=executor)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = fp.tradeoff_curve(prior, ["dp"], distortions, executor=client)
    assert np.array_equal(alone.upper["dp"], spread.upper["dp"])
    assert np.array_equal(alone.lower["dp"], spread.lower["dp"])
    assert (plain.lower["dp"] <= spread.upper["dp"]).all()
    assert (spread.lower["dp"] <= plain.upper["dp"]).all()


@pytest.mark.parametrize("executor", [3, "processes", [map]])
def test_what_cannot_run_points_is_refused(executor):
    with pytest.raises(fp.InvalidInput, match="executor must be"):
        fp.tradeoff_curve(fp.Uniform(1, 2), ["dp"], [0.2], executor=executor)


def test_information_level_of_a_prior_with_zeros():
    prior = fp.Dense([0.5, 0.0, 0.0, 0.5], [2, 2])
    bracket = fp.privacy_level(prior, 0.1, "mutual-information")
    assert 0 <= bracket.lower <= bracket.upper <= prior.entropy()
    curve = fp.tradeoff_curve(prior, distortions=[0.2, 0.6])
    assert np.isinf(curve.lower["identifiability"]).all()


def test_rows_of_one_value_have_no_trade_off():
    curve = fp.tradeoff_curve(fp.Uniform(2, 1), ["dp", "identifiability"], [0.0])
    assert curve.upper["dp"].tolist() == [0.0]


@pytest.mark.slow
def test_the_time_limit_of_a_level_is_one_total():
    prior = fp.Dense(np.random.default_rng(2).dirichlet(np.ones(64)), [2] * 6)
    quick = fp.privacy_level(prior, 1.5, "dp", time_limit=0.0)
    exact = fp.privacy_level(prior, 1.5, "dp")
    assert quick.lower <= exact.upper
    assert exact.lower <= quick.upper
    assert exact.width < 1e-5 * (1.0 + exact.upper) <= quick.width  # no program was solved


@pytest.mark.slow
def test_the_time_limit_of_a_curve_keeps_its_brackets():
    prior = fp.Dense(np.random.default_rng(2).dirichlet(np.ones(16)), [2] * 4)
    quick = fp.tradeoff_curve(prior, ["dp"], [0.8, 1.2], time_limit=0.0)
    exact = fp.tradeoff_curve(prior, ["dp"], [0.8, 1.2])
    assert (quick.lower["dp"] <= exact.upper["dp"]).all()
    assert (exact.lower["dp"] <= quick.upper["dp"]).all()
