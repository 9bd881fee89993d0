"""Every implication as a property of random mechanisms, measured from the definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import law
from fastpriv.notions.registry import RELATED
from oracles import disclosure as od
from oracles import pointwise as op

TOLERANCE = o.num("1e-13")


def row_levels(matrix, sizes, prior):
    """Return the largest leakage about a row and the largest mutual information of one."""
    leakage, information = [], []
    for i in range(len(sizes)):
        laws, marginal = op.row_matrix(matrix, prior, sizes, i)
        leakage.append(max(op.pml(laws, marginal)))
        information.append(o.mutual_information(laws, marginal))
    return max(leakage), max(information)


def measured(matrix, sizes, pmf):
    """Return the level of every notion that a fixed prior or none decides."""
    information = o.mutual_information(matrix, pmf)
    levels = {
        "strong-dp": o.strong_dp_level(matrix),
        "dp": o.dp_level(matrix, sizes),
        "identifiability": o.identifiability_level(matrix, pmf, sizes),
        "pml-all-priors": o.strong_dp_level(matrix),
        "information-privacy": op.information_privacy(matrix, pmf),
        "pml": max(op.pml(matrix, pmf)),
        "divergence": od.divergence_level(matrix, pmf),
        "maximal-leakage": o.maximal_leakage([matrix[x] for x in np.flatnonzero(pmf)]),
        "mutual-information": information,
        "product-row-pml": o.dp_level(matrix, sizes),  # a supremum, reached below
        "product-row-max-information": o.dp_level(matrix, sizes),
    }
    if o.entropy(pmf) > 0:
        levels["leakage-factor"] = information / o.entropy(pmf)
    return levels


@st.composite
def mechanisms(draw):
    """Return sizes, a matrix (near-flat, positive, with zeros or deterministic) and a prior."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    size, outputs = math.prod(sizes), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    flat = draw(st.sampled_from([0.0, 0.1, 3.0, 100.0]))
    matrix = rng.random((size, outputs)) ** 3 + flat
    if draw(st.booleans()) and draw(st.booleans()):
        matrix = matrix * (rng.random(matrix.shape) < 0.7)
        matrix[matrix.sum(axis=1) == 0, 0] = 1.0
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    pmf = law(rng, size, draw(st.sampled_from([0.01, 0.5, 5.0])))
    return sizes, fp.Channel(matrix, sizes).matrix(), pmf


@pytest.mark.search(every=10)
@settings(max_examples=150, deadline=None)
@given(mechanisms())
def test_whatever_follows_holds(case):
    sizes, matrix, pmf = case
    prior = fp.Dense(pmf, sizes)
    levels = measured(matrix, sizes, pmf)
    for notion, level in levels.items():
        if level == o.inf:
            continue
        # A guarantee that holds; a rounded prior can make a divergence of 0 just negative.
        given_level = np.nextafter(max(float(level), 0.0), math.inf)
        found = fp.implications(given_level, notion, prior=prior).levels
        for other, bound in found.items():
            if other in levels:
                assert levels[other] <= bound * (1 + TOLERANCE) + TOLERANCE, (notion, other)


@pytest.mark.search(every=10)
@settings(max_examples=100, deadline=None)
@given(mechanisms(), st.integers(0, 2**32))
def test_rows_under_product_priors(case, seed):
    sizes, matrix, _ = case
    level = o.dp_level(matrix, sizes)
    assume(level < o.inf)
    rng = np.random.default_rng(seed)
    pmf = o.product_pmf([law(rng, m, 0.01) for m in sizes])
    leakage, information = row_levels(matrix, sizes, pmf)
    found = fp.implications(float(level), "dp").levels
    for name, value in (("product-row-pml", leakage), ("product-row-information", information)):
        assert value <= found[name] * (1 + TOLERANCE) + TOLERANCE
    assert (
        found["product-row-max-information"] == found["approximate-dp"] == found["product-row-pml"]
    )
    assert o.hockey_stick(matrix, sizes, np.nextafter(float(level), math.inf)) <= TOLERANCE


@settings(max_examples=50, deadline=None)
@given(mechanisms())
def test_product_priors_reach_the_dp_level(case):
    # Saeidian et al. 2024, Theorem 4.2 (3), and Wu-Xia-He 2020, Theorem 1: the other direction.
    sizes, matrix, _ = case
    level = o.dp_level(matrix, sizes)
    assume(0 < level < o.inf)
    dbs, small = o.databases(sizes), Fraction(1, 10**30)
    _, j, _ = max(
        ((i, j, y) for i, j in o.neighbour_pairs(sizes) for y in range(len(matrix[0]))),
        key=lambda c: o.log_ratio(matrix[c[0]][c[2]], matrix[c[1]][c[2]]),
    )
    # All rows nearly certain of the worse database, so that the better one is a surprise.
    rows = [
        [1 - small * (m - 1) if v == dbs[j][k] else small for v in range(m)]
        for k, m in enumerate(sizes)
    ]
    leakage, _ = row_levels(matrix, sizes, o.product_pmf(rows))
    assert leakage >= level - o.num("1e-7")


@settings(max_examples=50, deadline=None)
@given(mechanisms())
def test_priors_reach_the_leakage_capacity(case):
    # Saeidian et al. 2024, Theorem 4.5 (1): leakage over all priors is the strong DP level.
    _, matrix, _ = case
    level = o.strong_dp_level(matrix)
    assume(level < o.inf)
    best, small = o.mpf(0), Fraction(1, 10**30)
    for x in range(len(matrix)):
        pmf = [1 - small * (len(matrix) - 1) if z == x else small for z in range(len(matrix))]
        best = max(best, max(op.pml(matrix, pmf)))
    assert abs(best - level) <= o.num("1e-7")


def test_the_printed_bound_on_worst_case_divergence_fails():
    # Makhdoumi-Fawaz 2013, Proposition 4 (3) as printed: p = (1/2, ten times 1/20), posteriors q
    # and 2p - q with q scaling the ten by e^-0.2.
    tail = 0.05 * math.exp(-0.2)
    q = np.array([1 - 10 * tail] + [tail] * 10)
    p = np.array([0.5] + [0.05] * 10)
    matrix = np.stack([q / (2 * p), 1 - q / (2 * p)], axis=1)
    epsilon = float(op.information_privacy(matrix, p))
    assert epsilon == pytest.approx(0.2)
    assert op.worst_gain(matrix, p) == pytest.approx(0.2252, abs=1e-4)
    found = fp.implications(epsilon, "information-privacy", prior=p)
    assert od.divergence_level(matrix, p) <= found.levels["divergence"]
    assert o.mutual_information(matrix, p) / o.entropy(p) <= found.levels["leakage-factor"]
    assert not any("worst" in name for name in RELATED)


def test_known_levels():
    prior = fp.Product.iid([0.8, 0.2], 3)
    found = fp.implications(0.5, "dp", prior=prior)
    assert found.levels["strong-dp"] == pytest.approx(1.5)
    assert found.levels["identifiability"] == pytest.approx(0.5 + math.log(4))
    u = 1.5 / (1 - math.exp(-1.5))  # the channel capacity is at most psi(1.5) = u - 1 - ln u
    assert found.levels["leakage-factor"] == pytest.approx((u - 1 - math.log(u)) / prior.entropy())
    assert fp.implications(0.5, "strong-dp").levels["information-privacy"] == 0.5
    assert fp.implications(0.5, "information-privacy").levels["strong-dp"] == 1.0
    # From leakage to both sides of the ratio, below the disclosure threshold only.
    uniform = fp.Uniform(1, 2)
    level = fp.implications(0.5, "pml", prior=uniform).levels["information-privacy"]
    assert level == pytest.approx(-math.log(2 - math.exp(0.5)))
    assert "information-privacy" not in fp.implications(0.7, "pml", prior=uniform).levels
    assert "strong-dp" not in fp.implications(0.5, "pml").levels
    assert "strong-dp" not in fp.implications(0.5, "dp").levels  # without n
    assert fp.implications(0.5, "dp", n=4).levels["pml"] == pytest.approx(2.0)


def test_leakage_bounds_the_other_side_exactly():
    # Reached by a mechanism with one output that the least likely database makes least likely.
    pmf, level = [0.3, 0.7], 0.2
    low = (1 - 0.7 * math.exp(level)) / 0.3  # p(y|x)/p(y) for the first database
    matrix = np.array([[low, 1 - low], [math.exp(level), 1 - math.exp(level)]])
    matrix[:, 0] *= 0.1  # a rare output: the other one tells little
    matrix[:, 1] = 1 - matrix[:, 0]
    assert float(max(op.pml(matrix, pmf))) == pytest.approx(level)
    found = fp.implications(level, "pml", prior=pmf).levels["information-privacy"]
    assert float(op.information_privacy(matrix, pmf)) == pytest.approx(found)


def test_priors_without_full_support():
    found = fp.implications(0.5, "information-privacy", prior=[0.5, 0.5, 0.0])
    assert "strong-dp" not in found.levels
    assert found.levels["pml"] == 0.5
    point = fp.implications(0.5, "pml", prior=[1.0]).levels
    assert "leakage-factor" not in point
    assert "identifiability" not in fp.implications(0.5, "dp", prior=[1.0, 0.0]).levels


@pytest.mark.parametrize("notion", RELATED)
@pytest.mark.parametrize("level", [0.0, 1e-300, 0.3, 700.0, 1e308])
def test_every_start(notion, level):
    prior = fp.Product.iid([0.6, 0.4], 5)
    if notion == "identifiability" and level < prior.epsilon_x_lower():
        with pytest.raises(fp.Infeasible, match=r"impossible under this prior.*eps_X"):
            fp.implications(level, notion, prior=prior)
        return
    found = fp.implications(level, notion, prior=prior)
    assert next(iter(found.levels)) == notion
    assert all(0.0 <= v < math.inf for v in found.levels.values())
    for name, value in found.levels.items():
        chain = found.chain(name)
        at = notion
        for step in chain:
            assert step.premise == at
            assert step.source
            at = step.conclusion
        assert at == name
        assert value == (chain[-1].level if chain else level)


def test_coefficients_and_capacities_as_premises():
    rng = np.random.default_rng(39)
    for _ in range(20):
        channel = fp.Channel(rng.dirichlet(np.full(3, 0.4), 4), [2, 2])
        prior = fp.Dense(rng.dirichlet(np.ones(4)), [2, 2])
        levels = {
            "contraction": fp.contraction_coefficient(channel).upper,
            "sdpi": fp.sdpi_constant(channel, prior, gap=1e-3, time_limit=None).upper,
            "maximal-correlation": float(fp.maximal_correlation(channel, prior)),
            "max-information": fp.max_information(channel, prior),
            "row-pml": fp.pml_level(channel, prior, "worst"),
            "max-individual-capacity": fp.max_individual_capacity(channel),
            "group-capacity": fp.group_capacity(channel, 2).upper,
        }
        truths = levels | {
            "leakage-factor": float(fp.leakage_factor(channel, prior)),
            "mutual-information": float(fp.mutual_information(channel, prior)),
            "pml": fp.pml_level(channel, prior),
            "strong-dp": fp.strong_dp_level(channel),
            "dp": fp.dp_level(channel),
            "individual-capacity": fp.individual_capacity(channel).lower,
        }
        for notion, level in levels.items():
            if level < math.inf:
                found = fp.implications(level, notion, prior=prior).levels
                for other in found.keys() & truths.keys() - {"sdpi", "contraction"}:
                    assert truths[other] <= found[other] * (1 + 1e-9) + 1e-12, (notion, other)
    found = fp.implications(0.2, "contraction").levels
    assert found["leakage-factor"] == 0.2
    assert found["maximal-correlation"] == pytest.approx(math.sqrt(0.2))
    assert fp.implications(0.3, "max-information").levels["pml"] == 0.3
    assert fp.implications(0.3, "row-pml", n=1).levels["pml"] == 0.3
    assert "pml" not in fp.implications(0.3, "row-pml", n=2).levels
    assert fp.implications(0.3, "max-individual-capacity").levels["dp"] == 0.3
    assert fp.implications(0.3, "group-capacity").levels["individual-capacity"] == 0.3


def test_tables_graphs_and_plots():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = fp.implications(1.0, "dp", prior=fp.Uniform(3, 2))
    table = found.table().splitlines()
    assert repr(found) == found.table()
    assert len(table) == len(found.levels) + 1
    assert "Theorem 4.2" in found.table()
    dot = found.to_dot()
    assert dot.startswith("digraph")
    assert dot.count("->") == len(found.steps)
    assert '"dp" -> "identifiability" [label="e + eps_X' in dot
    texts = [text.get_text() for text in found.plot().texts]
    assert any(text.startswith("identifiability\n") for text in texts)
    alone = fp.implications(0.1, "approximate-dp")
    assert [*alone.levels] == ["approximate-dp"]
    alone.plot()
    matplotlib.pyplot.close("all")
    with pytest.raises(fp.InvalidInput, match="must be one that follows"):
        alone.chain("dp")


@pytest.mark.parametrize(
    ("level", "notion", "options"),
    [
        (-1.0, "dp", {}),
        (math.nan, "dp", {}),
        (math.inf, "dp", {}),
        ("1", "dp", {}),
        (1.0, "privacy", {}),
        (1.0, 3, {}),
        (1.0, None, {}),
        (1.0, ["dp"], {}),
        (1.0, "dp", {"n": 0}),
        (1.0, "dp", {"n": 2, "prior": fp.Uniform(3, 2)}),
        (1.0, "dp", {"prior": [0.5, 0.6]}),
    ],
)
def test_hostile(level, notion, options):
    with pytest.raises(fp.InvalidInput):
        fp.implications(level, notion, **options)


def test_no_level_exceeds_what_there_is_to_know():
    prior = fp.Product.iid([0.99, 0.01], 40)
    found = fp.implications(0.5, "dp", prior=prior).levels
    assert found["mutual-information"] == pytest.approx(prior.entropy())
    assert found["leakage-factor"] == 1.0
    assert fp.implications(50.0, "pml-all-priors", prior=[0.5, 0.5]).levels["pml"] < 0.7


@pytest.mark.parametrize("units", [1, 2, 3, 5, 1001, 2**52 - 1, 2**53])
@pytest.mark.parametrize("size", [2, 3, 8, 64])
def test_subnormal_levels_are_rounded_up(units, size):
    """Around 5e-324 a quotient or a product by H(S) may round down, to 0 at worst."""
    level, prior = units * 5e-324, fp.Dense(np.full(size, 1 / size))
    share = fp.implications(level, "mutual-information", prior=prior).levels["leakage-factor"]
    back = fp.implications(level, "leakage-factor", prior=prior).levels["mutual-information"]
    with o.mp.workdps(400):
        entropy = o.log(size)
        assert (
            o.num(level) / entropy <= o.num(share) <= o.num(level) / entropy * (1 + 1e-12) + 2e-323
        )
        assert (
            o.num(level) * entropy <= o.num(back) <= o.num(level) * entropy * (1 + 1e-12) + 2e-323
        )
    for notion, reached in (("mutual-information", "leakage-factor"), ("leakage-factor", "dp")):
        silent = fp.implications(0.0, notion, prior=prior).levels
        assert silent.get(reached, 0.0) == 0.0
