"""Files of the registry of deployments: closed forms, contradictions, bad files, our own form."""

import json
import math
from statistics import NormalDist

import pytest

import fastpriv as fp
from command_line import done, refused

yaml = pytest.importorskip("yaml")


def normal_cdf(x):
    """Return the distribution function of a normal number, accurate in the lower tail."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def stated(variant, releases="One release", mechanisms="", unit="User-level", **parameters):
    return {
        "deployment": {
            "basic": {"name": "Example"},
            "dp_variant": {"variant_name": variant},
            "privacy_loss": {"privacy_unit": unit, "privacy_parameters": parameters},
            "deployment_model": {"release_type": releases},
            "implementation": {"mechanisms": mechanisms},
        }
    }


def read(*words, **parameters):
    return fp.Deployment.from_dict(stated(*words, **parameters))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_pure_privacy_is_that_of_randomised_response(epsilon):
    (once,) = read("Pure DP", epsilon=epsilon).implied()
    rate = min(math.exp(epsilon) * 0.01, 1.0 - math.exp(-epsilon) * 0.99)
    assert once.advantage.lower <= math.tanh(epsilon / 2.0) <= once.advantage.upper
    assert once.tpr.lower <= rate <= once.tpr.upper
    # delta(t) = (e^epsilon - e^t) / (1 + e^epsilon)
    for delta, level in once.epsilon.items():
        truth = math.log(math.exp(epsilon) - delta * (1.0 + math.exp(epsilon)))
        assert level.lower - 1e-12 <= truth <= level.upper + 1e-12


@pytest.mark.parametrize("rho", [0.015, 0.81, 2.63])
def test_gaussian_noise_of_a_rho_is_exact_and_below_the_general_bound(rho):
    every, normal = read("Zero-concentrated DP", mechanisms="Gaussian", rho=rho).implied()
    mu = math.sqrt(2.0 * rho)
    assert normal.advantage.upper == pytest.approx(2.0 * normal_cdf(mu / 2.0) - 1.0, rel=1e-9)
    rate = normal_cdf(NormalDist().inv_cdf(0.01) + mu)
    assert normal.tpr.lower <= rate * (1.0 + 1e-9)
    assert rate <= normal.tpr.upper * (1.0 + 1e-9)
    for delta in normal.epsilon:
        t = normal.epsilon[delta].upper
        reached = normal_cdf(mu / 2 - t / mu) - math.exp(t) * normal_cdf(-mu / 2 - t / mu)
        assert reached == pytest.approx(delta, rel=1e-4)
        assert t <= every.epsilon[delta].upper


def test_many_releases_are_composed():
    counts = [one.releases for one in read("Pure DP", "Many releases", epsilon=0.1).implied()]
    assert counts == [1, 10, 100]
    hundred = read("Pure DP", "Many releases", epsilon=0.1).implied()[-1]
    assert 1.0 < hundred.epsilon[1e-6].upper < 10.0  # below the sum


@pytest.mark.parametrize(
    ("variant", "parameters", "words"),
    [
        ("Pure DP", {"epsilon": 1, "delta": 1e-7}, "pure"),
        ("pure dp", {"epsilon": 1, "delta": 1e-7}, "pure"),
        ("Pure DP", {"epsilon": 1, "rho": 0.5}, "rho"),
        ("Approximate DP", {"epsilon": 1}, "delta is not stated"),
        ("Approximate DP", {"epsilon": 1, "delta": "n^-2"}, "not a number"),
        ("Approximate DP", {"epsilon": 1, "delta": 1.5}, "below 1"),
        ("Approximate DP", {"epsilon": -1, "delta": 1e-6}, "at least 0"),
        ("Approximate DP", {"epsilon": math.nan, "delta": 1e-6}, "at least 0"),
        ("Approximate DP", {"epsilon": True, "delta": 1e-6}, "at least 0"),
        ("Approximate DP", {"epsilon": [1], "delta": 1e-6}, "not a number"),
        ("Zero-concentrated DP", {"epsilon": 1}, "rho is not stated"),
        ("Zero-concentrated DP", {"epsilon": 1.453, "delta": 1e-5, "rho": 0.0728}, "reaches"),
    ],
)
def test_contradictions_are_named(variant, parameters, words):
    deployment = read(variant, **parameters)
    assert any(words in fault for fault in deployment.contradictions), deployment.contradictions
    assert f"CONTRADICTION: {deployment.contradictions[0]}" in str(deployment)


@pytest.mark.parametrize(
    ("variant", "parameters"),
    [
        ("Pure DP", {"epsilon": 1}),
        ("Approximate DP", {"epsilon": "1.0", "delta": "1e-6"}),
        ("Zero-concentrated DP", {"rho": 0.5}),
        ("Zero-concentrated DP", {"rho": 0.0728, "epsilon": 1.476, "delta": 1e-5}),
    ],
)
def test_consistent_files_have_no_contradiction(variant, parameters):
    assert read(variant, **parameters).contradictions == ()


def test_nothing_stated_implies_nothing():
    empty = fp.Deployment.from_dict({"deployment": {}})
    assert empty.implied() == []
    assert empty.profile() is None
    assert "imply no bound" in str(empty)
    assert json.loads(empty.to_json())["implied"] == []


@pytest.mark.parametrize("variant", ["Zero-concentrated DP", "Renyi DP", ""])
def test_an_epsilon_alone_is_a_bound_for_pure_privacy_only(variant):
    assert read(variant, epsilon=1).profile() is None
    assert (
        read(variant, epsilon=1, delta=1e-6).profile()
        == read("Approximate DP", epsilon=1, delta=1e-6).profile()
    )


def test_more_units_are_a_group_and_not_a_composition():
    deployment = read("Pure DP", "Many releases", epsilon=1, unit="Event-level")
    assert "group(k)" in " ".join(deployment.remarks)
    hundred = deployment.profile().group(100).epsilon(1e-6).upper
    assert hundred > 1.1 * deployment.implied()[-1].epsilon[1e-6].upper


@pytest.mark.parametrize("given", [None, 3, [], {}, {"deployment": 3}])
def test_other_contents_are_refused(given):
    with pytest.raises(fp.InvalidInput, match="deployment"):
        fp.Deployment.from_dict(given)


def test_the_unit_is_read():
    assert "protected less" in " ".join(read("Pure DP", epsilon=1, unit="User-day-level").remarks)


def test_our_release_is_read_back(tmp_path, capsys):
    report = fp.preview_release(1_000, domain={"sex": ["F", "M"]}, epsilon=1.0)
    path = tmp_path / "survey.yaml"
    path.write_text(report.to_registry("My survey", curators=["Office"], use="Planning"))
    deployment = fp.Deployment.read(path)
    assert deployment.epsilon == report.levels["dp"]
    assert deployment.contradictions == ()
    assert yaml.safe_load(path.read_text())["url_slug"] == "my-survey"
    assert "My survey: Pure DP, epsilon 1" in done(["deployment", str(path)], capsys)
    assert json.loads(done(["deployment", str(path), "--json"], capsys))["stated"]["epsilon"] == 1.0


def test_a_name_must_be_a_text():
    report = fp.preview_release(1_000, domain=4, epsilon=1.0)
    with pytest.raises(fp.InvalidInput, match="name must be a text"):
        report.to_registry(3)


@pytest.mark.parametrize("text", ["a: [", "\x00", "[1, 2]"])
def test_files_that_are_not_of_the_registry(text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text(text)
    refused(["deployment", "bad.yaml"], 2, "file", capsys)
