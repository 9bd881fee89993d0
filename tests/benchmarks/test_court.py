"""The court for accountants, and the enumerations it checks ours by. No timings."""

import json
import random
from collections import Counter
from itertools import product

import pytest
from mpmath import exp, inf, log, mpf, pi, quad, sqrt, workdps

import accountants
import court
import events
from events import Gaussian, Laplace, Response, Sampled, Times, Together
from oracles import enumeration

TREE = Together((Times(Sampled(Gaussian(1.5), 0.25), 7), Times(Times(Laplace(2.0), 3), 2)))


def test_text_of_a_tree_makes_it_again():
    assert eval(repr(TREE), vars(events)) == TREE


def test_leaves_are_counted_through_compositions():
    counted = events.leaves(Together((TREE, Laplace(2.0))))
    assert counted == Counter({Sampled(Gaussian(1.5), 0.25): 7, Laplace(2.0): 7})


def test_questions_are_lines_in_the_words_of_each_accountant():
    lines = {peer.name: peer.line for peer in accountants.PEERS}
    assert accountants.FASTPRIV.line(TREE, 1e-6) == (
        "PrivacyProfile.gaussian(1.5, 0.25).self_compose(7)"
        ".compose(PrivacyProfile.laplace(2.0).self_compose(3).self_compose(2)).epsilon(1e-06)"
    )
    assert lines["dp-accounting PLD"](Times(Response(2, 0.0), 3), 0.1) == (
        "PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)"
        ".compose(SelfComposedDpEvent(RandomizedResponseDpEvent(1.0, 2), 3)).get_epsilon(0.1)"
    )
    with pytest.raises(accountants.NotTaken, match="no Sampled"):
        lines["OpenDP"](TREE, 1e-6)
    with pytest.raises(accountants.NotTaken, match="no Response over 3 values"):
        lines["autodp"](Response(3, 1.0), 1e-6)
    steps = Times(Sampled(Gaussian(1.5), 0.04), 2250)
    assert lines["Opacus GDP"](steps, 1e-5) == "epsilon([(1.5, 0.04, 2250)], 1e-05)"
    with pytest.raises(accountants.NotTaken, match="more than 1 kind"):
        lines["Opacus GDP"](Together((steps, Gaussian(2.0))), 1e-5)
    with pytest.raises(accountants.NotTaken, match="no Laplace"):
        lines["riskcal"](TREE, 1e-5)
    with pytest.raises(accountants.NotTaken, match="no Times"):
        lines["PLD_accounting"](steps, 1e-5)


def test_an_accountant_of_histories_is_given_its_history():
    pytest.importorskip("riskcal")
    (riskcal,) = (peer for peer in accountants.PEERS if peer.name == "riskcal")
    tree = Times(Sampled(Gaussian(1.5), 0.04), 2250)
    ours = accountants.FASTPRIV.call(tree, 1e-5)()
    assert riskcal.call(tree, 1e-5)() == pytest.approx(ours.upper, rel=1e-3)


def test_cases_are_drawn_again_from_their_seed():
    first, again = ([events.draw(random.Random(s)) for s in range(30)] for _ in range(2))
    assert first == again
    assert {family for family, _, _ in first} == set(events.FAMILIES)


# The enumerations, against sums over all tuples of outcomes and integrals over all outputs.


def over_outcomes(pairs, t):
    """Sum of (P - e^t Q)_+ over all tuples of outcomes of releases, each a list of (p, q)."""
    total = mpf(0)
    for outcome in product(*pairs):
        p, q = mpf(1), mpf(1)
        for a, b in outcome:
            p, q = p * a, q * b
        total += max(p - exp(mpf(t)) * q, 0)
    return total


@pytest.mark.parametrize("t", [0.0, 0.3, 1.1])
def test_responses_by_all_tuples_of_outcomes(t):
    counts = {("response", 3, 0.4): 3, ("response", 2, 0.7): 2}
    with workdps(40):
        pairs = []
        for (_, m, epsilon), count in counts.items():
            chances = [exp(mpf(epsilon))] + [mpf(1)] * (m - 1)
            chances = [c / sum(chances) for c in chances]
            swapped = [chances[1], chances[0], *chances[2:]]
            pairs += [list(zip(chances, swapped, strict=True))] * count
        assert abs(enumeration.exact_delta(counts, t) - over_outcomes(pairs, t)) < mpf(10) ** -35


@pytest.mark.parametrize("leaf", [("discrete gaussian", 0.6), ("discrete laplace", 2.5)])
def test_noise_on_integers_by_all_pairs_of_integers(leaf):
    kind, given = leaf
    with workdps(40):
        square = kind == "discrete gaussian"
        values = range(-40, 41)

        def weight(x):
            return exp(-(mpf(x) ** 2) / (2 * mpf(given) ** 2) if square else -mpf(given) * abs(x))

        whole = sum(map(weight, values))
        one = [(weight(x) / whole, weight(x - 1) / whole) for x in values]
        expected = over_outcomes([one, one], 0.5)
        assert abs(enumeration.exact_delta({leaf: 2}, 0.5) / expected - 1) < mpf(10) ** -35


def test_gaussian_noise():
    with workdps(40):
        level = mpf("4.377178095681224608553986")  # at the double 1e-5
        assert abs(enumeration.gaussian_delta({("gaussian", 2.0): 4}, level) / mpf(1e-5) - 1) < (
            mpf(10) ** -22
        )


@pytest.mark.parametrize(("sigma", "q", "t"), [(1.0, 0.25, 0.1), (0.7, 0.6, 0.9), (2.0, 0.9, 0.0)])
def test_sampled_gaussian_noise_by_integrals(sigma, q, t):
    with workdps(25):

        def density(x, mean):
            return exp(-((x - mean) ** 2) / (2 * mpf(sigma) ** 2)) / (sigma * sqrt(2 * pi))

        def blank(x):
            return density(x, 0)

        def mixed(x):
            return (1 - mpf(q)) * blank(x) + q * density(x, 1)

        def positive(p, r):
            return quad(lambda x: max(p(x) - exp(mpf(t)) * r(x), 0), points)

        def ratio(value):
            return sigma**2 * log((value - 1 + q) / q) + mpf(1) / 2

        cuts = [ratio(exp(mpf(t)))] + ([ratio(exp(-mpf(t)))] if exp(-mpf(t)) > 1 - q else [])
        points = [-inf, *sorted({*cuts, mpf(0), mpf(1)}), inf]
        expected = max(positive(mixed, blank), positive(blank, mixed))
        value = enumeration.exact_delta({("sampled gaussian", sigma, q): 1}, t)
        assert abs(value - expected) < mpf(10) ** -15


def test_what_cannot_be_listed_is_not():
    assert enumeration.exact_delta({("laplace", 1.0): 1}, 0.5) is None
    assert enumeration.exact_delta({("discrete gaussian", 30.0): 9}, 0.5) is None
    assert enumeration.exact_delta({("gaussian", 1.0): 1, ("response", 2, 1.0): 1}, 0.5) is None


# Verdicts.


@pytest.fixture
def optimist(monkeypatch):
    """An accountant who halves our answer, and one who is not installed."""
    ours = accountants.FASTPRIV

    def half(tree, delta):
        return f"{ours.line(tree, delta)}.lower / 2"

    low = accountants.Accountant("optimist", "pytest", ours.imports, half)
    away = accountants.Accountant("stranger", "no-such-distribution", "", ours.line)
    for module in (court, court.sys.modules["verdicts"]):
        monkeypatch.setattr(module, "PEERS", (low, away))
    return low


def test_answers_that_are_too_low_are_named(optimist, tmp_path, capsys):
    file, written = tmp_path / "run.json", tmp_path / "court.md"
    arguments = ["--cases", "4", "--family", "integers", "--json", file, "--write", written]
    assert court.main(list(map(str, arguments))) == 0
    printed, run = capsys.readouterr().out, json.loads(file.read_text())
    assert "is reached, a relative difference of 0.5" in printed
    assert "not installed or not asked: stranger" in printed
    below = [case for case in run["cases"] if case["answers"][0]["epsilon"] < case["lower"]]
    assert len(below) == 4
    for case in below:
        assert case["answers"][0]["line"] in printed
        assert f"`{case['answers'][0]['line']}`" in written.read_text()
    assert "### optimist" in written.read_text()


def test_ours_is_named_where_it_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(court, "exact_curve", lambda counts: lambda t: mpf(1))
    assert court.main(["--cases", "1", "--alone"]) == 1
    assert "the bracket of fastpriv does not hold: PrivacyProfile" in capsys.readouterr().out


def test_a_shortfall_of_rounding_is_none():
    case = court.Case(0, "single", "", 1e-6, "", lower=2.0, upper=2.0)
    assert case.shortfall(court.Answer("a", epsilon=2.0 * (1 - 1e-10))) == 0.0
    assert case.shortfall(court.Answer("a", epsilon=1.5)) == 0.25


def test_ours_holds_in_a_sample(capsys):
    arguments = ["--cases", "20", "--alone", "--family", "integers", "--family", "responses"]
    assert court.main([*arguments, "--seed", "7"]) == 0
    assert "20 of 20" in capsys.readouterr().out
