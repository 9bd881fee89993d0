"""Audits of large mechanisms and short clocks: what is left out is said, and nothing waits."""

import math

import numpy as np
import pytest

import cases
import fastpriv as fp
import oracles as o


def same(found, truth):
    if isinstance(truth, fp.Bracket):
        return (found.lower, found.upper) == (truth.lower, truth.upper)
    return found == truth and type(found) is type(truth)


def test_time_limit_is_checked_and_kept():
    with pytest.raises(fp.InvalidInput, match="time_limit"):
        fp.audit(np.eye(2), time_limit=-1)
    audit = fp.audit(np.eye(2), time_limit=0)
    assert "time limit" in audit.skipped["individual-capacity"]
    assert audit["dp"] == math.inf


@pytest.mark.slow
def test_a_million_rows():
    n = 1_000_000
    audit = fp.audit(fp.HammingChannel(n, 2, 0.5), fp.Product.iid([0.7, 0.3], n), time_limit=60)
    assert audit["dp"] == 0.5
    assert audit["strong-dp"] == n * 0.5
    assert set(audit.skipped) == {"row-pml", "constrained-capacity"}
    assert audit.levels["dp"].worst.row is not None
    assert len(audit.to_json()) < 50_000
    assert max(map(len, repr(audit).splitlines())) <= 100


@pytest.mark.slow
def test_long_exchangeable_priors_are_not_waited_for():
    n = 100_000
    audit = fp.audit(fp.HammingChannel(n, 2, 0.5), fp.Exchangeable.beta_binomial(n, 0.5, 0.8))
    for notion in ("mutual-information", "pml", "leakage-factor", "epsilon-tilde"):
        assert "entries" in audit.skipped[notion]
    assert audit["identifiability"] > audit["dp"] == 0.5
    assert audit.to_html().count("<figure>") == 2


@pytest.mark.slow
def test_many_different_rows_are_drawn_or_left_out():
    rng = np.random.default_rng(0)
    kernels = [cases.kernel(rng, 2, 2) for _ in range(1700)]
    audit = fp.audit(fp.ProductChannel(kernels), fp.Uniform(1700, 2), time_limit=0)
    assert "Leakage of the outputs" not in audit.to_html()


def test_nothing_is_begun_long_after_the_limit(monkeypatch):
    monkeypatch.setattr("fastpriv.auditing.case._GRACE", -1e9)
    channel, prior = fp.HammingChannel(13, 2, 1.0), fp.Uniform(13, 2)  # small ones are
    audit = fp.audit(channel, prior, time_limit=3600.0)
    assert not audit.levels
    assert all("past the time limit" in why for why in audit.skipped.values())


def test_counts_of_many_bits_are_binomial():
    from fastpriv.channels.queries import MANY, binomials

    for n in (0, 1, 2, 5, 33, 34, 40, 61):
        assert binomials(n).tolist() == [min(math.comb(n, k), MANY) for k in range(n + 1)]


def test_small_matrices_do_not_wait_for_the_clock():
    audit = fp.audit([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], time_limit=0)
    assert set(audit.skipped) == {"individual-capacity", "constrained-capacity"}


@pytest.mark.slow
def test_large_structures_without_a_matrix():
    prior = fp.Exchangeable.beta_binomial(40, 0.5, 0.8)
    types = fp.audit(fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.01), prior)
    x, other = types.levels["dp"].worst.database, types.levels["dp"].worst.other
    home = prior.log_prob(other) - prior.log_prob(x)
    assert types["dp"] == pytest.approx(types.channel.epsilon + home, rel=1e-9)
    kernel = cases.kernel(np.random.default_rng(6), 301, 7)
    count = fp.audit(fp.QueryChannel.count(300, kernel), fp.Product.iid([0.9, 0.1], 300))
    step = count.levels["dp"].worst
    answers = [int(v.sum()) for v in (step.database, step.other)]
    found = o.log_ratio(*(kernel[a, step.output[0]] for a in answers))
    assert found == pytest.approx(count["dp"], rel=1e-12)
    assert abs(answers[0] - answers[1]) == 1


def test_what_is_too_large_is_skipped_and_said():
    rng = np.random.default_rng(0)
    law = rng.random(2**13)
    channel = fp.TiltedChannel(fp.Dense(law / law.sum(), [2] * 13), 0.3)
    audit = fp.audit(channel)
    assert audit["dp"] == fp.dp_level(channel)
    assert audit.levels["dp"].worst is not None
    assert "entries" in audit.skipped["channel-capacity"]


@pytest.mark.slow
def test_an_audit_does_not_look_at_the_clock(monkeypatch):
    """However fast the time passes, the numbers are the same; the searches do end."""
    rng = np.random.default_rng(8)
    prior = fp.Product.iid([0.6, 0.3, 0.1], 3)
    channel = fp.Channel(cases.kernel(rng, 27, 10), [3] * 3)
    chosen = ["individual-capacity", "constrained-capacity"]
    idle = fp.audit(channel, prior, notions=chosen)
    assert idle["constrained-capacity"].width > 1e-3  # the search ended at its bound on the work
    seconds = iter(range(10**9))
    monkeypatch.setattr("time.monotonic", lambda: 1e3 * next(seconds))
    busy = fp.audit(channel, prior, notions=chosen)
    for notion in chosen:
        assert same(busy[notion], idle[notion])
    limited = fp.audit(channel, prior, notions=chosen, time_limit=1.0)
    assert limited["constrained-capacity"].width > idle["constrained-capacity"].width
