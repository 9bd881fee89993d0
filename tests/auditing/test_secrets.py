"""Audits about a secret behind the database, and arguments that do not go together."""

import math

import mpmath
import numpy as np
import pytest

import cases
import fastpriv as fp
import oracles as o

JOINT = np.array([[0.3, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.3]])


def test_a_secret_behind_the_database():
    rng = np.random.default_rng(2)
    matrix = cases.kernel(rng, 4, 3)
    audit = fp.audit(fp.Channel(matrix, [2, 2]), joint=JOINT)
    pair = JOINT @ matrix
    information = float(o.joint_information(pair))
    assert audit["secret-mutual-information"] == pytest.approx(information, rel=1e-12)
    given_s, law = pair / pair.sum(axis=1, keepdims=True), pair.sum(axis=0)
    odds = given_s / law
    assert audit["secret-pml"] == pytest.approx(math.log(odds.max()), rel=1e-12)
    assert audit["secret-pml"] >= math.log(odds.max())
    both = max(math.log(odds.max()), -math.log(odds.min()))
    assert audit["secret-information-privacy"] == pytest.approx(both, rel=1e-12)
    strong = np.log(given_s.max(axis=0) / given_s.min(axis=0)).max()
    assert audit["secret-strong-dp"] == pytest.approx(strong, rel=1e-12)
    most = math.log(given_s.max(axis=0).sum())
    assert audit["secret-maximal-leakage"] == pytest.approx(most, rel=1e-12)
    entropy = -sum(p * math.log(p) for p in JOINT.sum(axis=1))
    share = information / entropy
    assert audit["secret-leakage-factor"] == pytest.approx(share, rel=1e-9)
    assert audit["secret-leakage-factor"] >= share
    right = math.fsum(pair.max(axis=0))
    assert audit["secret-error-probability"] <= 1.0 - right
    worst = audit.levels["secret-pml"].worst
    assert odds[worst.database[0], worst.output[0]] == odds.max()
    assert f"S = {worst.database[0]}" in audit.levels["secret-pml"].where
    assert audit["pml"] == fp.pml_level(fp.Channel(matrix, [2, 2]), JOINT.sum(axis=0))
    # Data processing: no level about S exceeds that about the database.
    assert audit["secret-pml"] <= audit["pml"]
    assert audit["secret-mutual-information"] <= audit["mutual-information"]


@pytest.mark.slow
def test_secrets_that_never_occur_are_left_out():
    joint = np.vstack([JOINT, np.zeros(4)])
    matrix = cases.kernel(np.random.default_rng(2), 4, 3)
    plain, padded = (fp.audit(matrix, joint=j) for j in (JOINT, joint))
    for notion in plain:
        if notion.startswith("secret"):
            assert plain[notion] == padded[notion]


def test_prior_and_joint_must_agree():
    channel = fp.Channel(np.full((4, 2), 0.5), [2, 2])
    assert "secret-pml" in fp.audit(channel, JOINT.sum(axis=0), JOINT)
    with pytest.raises(fp.InvalidInput, match="prior and joint must agree; database 0"):
        fp.audit(channel, [0.25, 0.25, 0.2, 0.3], JOINT)
    with pytest.raises(fp.InvalidInput, match="joint must have a column for each of 4 databases"):
        fp.audit(channel, joint=JOINT[:, :3] / JOINT[:, :3].sum())
    with pytest.raises(fp.InvalidInput, match="joint"):
        fp.audit(channel, joint=[0.5, 0.5])


@pytest.mark.parametrize(
    "arguments",
    [
        ("a channel",),
        ([[0.5, 0.4]],),
        (fp.Uniform(2, 2),),
        (np.eye(4), [0.5, 0.5]),
        (np.eye(4), fp.Uniform(3, 2)),
        (np.eye(4), fp.PriorSet.all(4)),
    ],
)
def test_wrong_input_is_refused_in_words(arguments):
    with pytest.raises(fp.InvalidInput, match=r".{20}"):
        fp.audit(*arguments)


@pytest.mark.parametrize("spread", [1e-16, 1e-12, 1e-8, 0.1])
def test_information_about_a_secret_is_an_upper_end(spread):
    """Laws of the output given S are sums, whose rounding may hide what they tell."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        W = np.abs(1.0 / 3.0 + spread * rng.standard_normal((4, 3)))
        W /= W.sum(axis=1, keepdims=True)
        joint = rng.dirichlet([1.0] * 8).reshape(2, 4)
        audit = fp.audit(W, joint=joint, notions=["secret-mutual-information"])
        with mpmath.workdps(60):
            rows = [o.normal([mpmath.mpf(v) for v in row]) for row in W.tolist()]
            masses = [[mpmath.mpf(v) for v in row] for row in joint.tolist()]
            laws = [
                [mpmath.fdot(law, column) / mpmath.fsum(law) for column in zip(*rows, strict=True)]
                for law in masses
            ]
            secret = o.normal([mpmath.fsum(law) for law in masses])
            assert audit["secret-mutual-information"] >= o.mutual_information(laws, secret)
