"""Many mechanisms at once: the same levels as one by one, whatever they are mixed with."""

import importlib.util
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.auditing import many

WITHOUT_PRIOR = ["dp", "strong-dp", "maximal-leakage"]


def stack_and_priors(count, inputs, outputs, seed=0):
    rng = np.random.default_rng(seed)
    stack, priors = rng.random((count, inputs, outputs)) + 0.01, rng.random((count, inputs))
    return stack / stack.sum(-1, keepdims=True), priors / priors.sum(-1, keepdims=True)


def agree(table, channels, priors):
    assert list(table) == (WITHOUT_PRIOR if priors is None else list(many._CHEAP))
    laws = [None] * len(channels) if priors is None else priors
    for slug in table:
        notion = fp.notions.NOTIONS[slug]
        each = zip(channels, laws, strict=True)
        expected = [float(notion.level(channel, law)) for channel, law in each]
        np.testing.assert_allclose(np.asarray(table[slug]), expected, rtol=1e-12, atol=1e-15)


def test_a_stack(monkeypatch):
    monkeypatch.setattr(many, "_TOGETHER", 100)
    stack, priors = stack_and_priors(31, 3, 5)
    agree(fp.audit_many(stack), stack, None)
    agree(fp.audit_many(stack, priors), stack, priors)
    agree(fp.audit_many(stack, priors.tolist()), stack, priors)
    for common in (priors[0], priors[0].tolist(), fp.Dense(priors[0])):
        agree(fp.audit_many(stack, common), stack, [priors[0]] * 31)
    mixed = [fp.Dense(priors[0]), *priors[1:]]
    agree(fp.audit_many(stack, mixed), stack, priors)


def test_matrices_of_many_shapes_and_structured_channels():
    small, small_priors = stack_and_priors(4, 2, 3, seed=1)
    large, large_priors = stack_and_priors(3, 5, 5, seed=2)
    uniform = fp.Uniform(3, 2)
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3)
    cases = [
        (small[0], small_priors[0]),
        (fp.HammingChannel(3, 2, 1.0), uniform),
        (fp.Channel(large[0]), fp.Dense(large_priors[0])),
        (small[1].tolist(), small_priors[1].tolist()),
        (fp.Channel(np.full((4, 2), 0.5), [2, 2]), fp.Uniform(2, 2)),
        (fp.HammingChannel(3, 2, 0.5), chain),
        (large[1], large_priors[1]),
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]),
    ]
    channels, priors = (list(side) for side in zip(*cases, strict=True))
    agree(fp.audit_many(channels, priors), channels, priors)
    agree(fp.audit_many(iter(channels)), channels, None)


def test_one_structured_prior_for_plain_matrices():
    stack, _ = stack_and_priors(3, 4, 4, seed=3)
    prior = fp.Product.iid([0.7, 0.3], 2)
    agree(fp.audit_many(stack, prior), stack, [prior] * 3)


@pytest.mark.slow
def test_threads_and_processes(monkeypatch):
    monkeypatch.setattr(many, "_TOGETHER", 200)
    stack, priors = stack_and_priors(20, 3, 5, seed=4)
    expected = fp.audit_many(stack, priors)
    with ThreadPoolExecutor(2) as pool:
        assert expected.equals(fp.audit_many(stack, priors, executor=pool))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert expected.equals(fp.audit_many(stack, priors, executor=pool, progress=True))
        stack[17, 0, 0] = -1.0
        with pytest.raises(fp.InvalidInput, match=r"channels\[17\]"):
            fp.audit_many(stack, priors, executor=pool)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_client(monkeypatch):
    distributed = pytest.importorskip("dask.distributed")
    monkeypatch.setattr(many, "_TOGETHER", 200)
    stack, priors = stack_and_priors(20, 3, 5, seed=5)
    expected = fp.audit_many(stack, priors)
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        assert expected.equals(fp.audit_many(stack, priors, executor=client))
        assert expected.equals(fp.audit_many(stack, priors, executor=client.get_executor()))


def test_without_pandas(monkeypatch):
    stack, priors = stack_and_priors(4, 3, 3, seed=6)
    expected = fp.audit_many(stack, priors)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name)
    )
    table = fp.audit_many(stack, priors)
    assert isinstance(table, dict)
    for slug, column in table.items():
        assert isinstance(column, np.ndarray)
        np.testing.assert_array_equal(column, expected[slug])


def test_a_wrong_element_is_named():
    stack, priors = stack_and_priors(6, 3, 4, seed=7)
    other = [stack_and_priors(1, 2, 2)[0][0], *stack]
    for value in (np.nan, -0.25, 0.9):
        bad = stack.copy()
        bad[4, 1, 1] = value
        with pytest.raises(fp.InvalidInput, match=r"channels\[4\]: every row of|channels\[4\]: m"):
            fp.audit_many(bad, priors)
        with pytest.raises(fp.InvalidInput, match=r"channels\[5\]"):
            fp.audit_many([other[0], *bad])
        laws = priors.copy()
        laws[2, 0] = value
        with pytest.raises(fp.InvalidInput, match=r"channels\[2\]: prior"):
            fp.audit_many(stack, laws)
    with pytest.raises(fp.InvalidInput, match=r"channels\[1\] must be a channel or a matrix"):
        fp.audit_many([stack[0], fp.Uniform(2, 2)])
    with pytest.raises(fp.InvalidInput, match=r"channels\[1\] must be a channel or a matrix"):
        fp.audit_many([stack[0], [0.5, 0.5]])
    with pytest.raises(fp.InvalidInput, match=r"priors\[0\] must have 3 entries, as channels\[0\]"):
        fp.audit_many(list(stack), [0.5, 0.5])


def test_bad_lists_are_refused():
    stack, priors = stack_and_priors(6, 3, 4, seed=8)
    with pytest.raises(fp.InvalidInput, match="must not be empty"):
        fp.audit_many([])
    with pytest.raises(fp.InvalidInput, match="must be a non-empty array"):
        fp.audit_many(stack[0])
    with pytest.raises(fp.InvalidInput, match="For one mechanism call audit"):
        fp.audit_many(fp.HammingChannel(2, 2, 1.0))
    with pytest.raises(fp.InvalidInput, match=r"must have shape \(3,\) or \(6, 3\)"):
        fp.audit_many(stack, priors[:5])
    with pytest.raises(fp.InvalidInput, match="one for each of 6; got 5"):
        fp.audit_many(list(stack), list(priors[:5]))
    with pytest.raises(fp.InvalidInput, match="priors must be distributions"):
        fp.audit_many(list(stack), 3)
