"""Small problems in plain Python: the same bits as machine code, and no numba."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import kernels
from fastpriv.kernels import cache, dispatchers, loader, plain

pytestmark = pytest.mark.skipif(
    loader.SHIPPED is not None or loader.asked("NUMBA_DISABLE_JIT"), reason="needs numba's code"
)


def numbers(kernel, arguments):
    """Return the bytes of all that a kernel returns or writes."""
    given = copy.deepcopy(arguments)
    result = kernel(*given)
    parts = [*(result if isinstance(result, tuple) else (result,)), *given]
    return [(type(part), np.asarray(part).tobytes()) for part in parts if part is not None]


def random_rows(rng, rows, columns):
    """Random distributions: some entries are zero, some rows are nearly equal."""
    W = rng.dirichlet(np.full(columns, 10.0 ** rng.uniform(-1, 1)), rows)
    kind = rng.integers(4)
    if kind == 0:
        W[rng.uniform(size=W.shape) < 0.3] = 0.0
        W[:, 0] = 1.0 - W[:, 1:].sum(axis=1)
    elif kind == 1:
        W[1:] = W[0] * (1.0 + 1e-9 * rng.uniform(-1, 1, W[1:].shape))
        W /= W.sum(axis=1, keepdims=True)
    return W


def ask(rng):
    """Ask random questions about a small mechanism."""
    n, columns = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    channel = fp.Channel(random_rows(rng, 2**n, columns), fp.Space([2] * n))
    prior = fp.Dense(rng.dirichlet(np.ones(2**n)), [2] * n)
    if rng.integers(3) == 0:
        epsilon = 10.0 ** rng.uniform(-6, 1)
        channel, prior = fp.HammingChannel(n, 2, epsilon), fp.Product.iid([0.7, 0.3], n)
    fp.audit(channel, prior)
    fp.pml(channel, fp.Product.iid([0.6, 0.4], n))
    fp.constrained_capacity(channel, 0.5 * prior.entropy(), gap=0.1, time_limit=0.0)
    fp.hockey_stick_epsilon(channel, 1e-3)
    fp.channel_capacity(random_rows(rng, 2, 3))


def test_plain_python_returns_the_bits_of_machine_code(monkeypatch):
    compared, wrong = dict.fromkeys(loader.SMALL, 0), set()

    def both(name):
        small, kernel = plain.Small(name), loader.declared(name)
        small.compiled = lambda: kernel
        small.left = 10.0

        def call(*arguments):
            if compared[name] < 200:
                compared[name] += 1
                if numbers(small, arguments) != numbers(kernel, arguments):
                    wrong.add(name)
            return kernel(*arguments)

        return call

    for name in loader.SMALL:
        monkeypatch.setattr(kernels, name, both(name), raising=False)
    rng = np.random.default_rng(5)
    for _ in range(25):
        ask(rng)
    assert not wrong
    few = {name for name, count in compared.items() if count < 3}
    assert few <= {"log_ratio_up", "are_channels", "hamming_cost"}, few


def few_entries(name, rng):
    """Random arguments of a kernel that is interpreted for few entries only."""
    rows = int(rng.integers(2, 5))
    W = random_rows(rng, rows, int(rng.integers(2, {2: 6, 3: 4, 4: 3}[rows])))
    if name == "rows_contraction":
        return W, float(rng.choice([0.0, 1e-16]))
    if name == "capacities":
        gap = 10.0 ** rng.uniform(-14, -2)
        return W[None], gap, 0, 1, np.zeros(1), np.zeros(1), np.zeros((1, rows))
    if rng.integers(2):
        W = np.eye(rows)  # a weight of 2^64
    W *= 1.0 + rng.uniform(-4e-16, 4e-16, W.shape)
    return W, np.zeros(W.shape, np.uint64), np.zeros(len(W), np.int64)


@pytest.mark.parametrize("name", ["capacities", "rows_contraction", "integer_weights"])
def test_few_entries_have_the_bits_of_machine_code(name):
    small, kernel, rng = plain.Small(name), loader.declared(name), np.random.default_rng(3)
    small.compiled = lambda: pytest.fail("it was not interpreted")
    for _ in range(200):
        small.left = plain.SECONDS
        arguments = few_entries(name, rng)
        assert numbers(small, arguments) == numbers(kernel, arguments)


@pytest.mark.slow
def test_the_first_audit_of_a_small_channel_compiles_nothing(tmp_path):
    code = """
import sys, fastpriv as fp
fp.audit([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]], prior=[0.7, 0.2, 0.1])
print("numba" in sys.modules)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_where_python_raises_machine_code_answers_from_the_same_input():
    small = plain.Small("row_divergences")

    def spoilt(W, q, c, start, stop, out):
        q[:] = -1.0
        raise ZeroDivisionError

    small.function = spoilt
    W, q, out = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.5, 0.5]), np.empty(2)
    small(W, q, np.zeros(2), 0, 2, out)
    assert q.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(out, [0.0, np.log(2.0)], rtol=1e-15)


def test_machine_code_follows_once_interpreting_has_taken_its_time():
    small = plain.Small("entropy")
    uniform = np.full(4, 0.25)
    assert small(uniform) == loader.declared("entropy")(uniform)
    assert 0.0 < small.left < plain.SECONDS
    small.function = None  # it cannot be called any more
    small.left = 0.0
    assert small(uniform) == loader.declared("entropy")(uniform)
    small.left = plain.SECONDS
    large = np.full(plain.ENTRIES + 1, 1.0 / (plain.ENTRIES + 1))
    assert small(large) == loader.declared("entropy")(large)
    assert kernels.entropy is loader.declared("entropy")


def test_machine_code_follows_sooner_if_it_is_on_disk():
    kernel, uniform = loader.declared("entropy"), np.full(4, 0.25)
    kernel.compile(kernel.declared[0])  # saves it
    small = plain.Small("entropy")
    small(uniform)
    assert small.left > plain.SECONDS - plain.LOADING
    small.left = plain.SECONDS - 2.0 * plain.LOADING
    small(uniform)
    assert small.left == 0.0


def test_machine_code_that_is_not_on_disk_takes_longer_to_follow(monkeypatch):
    monkeypatch.setattr(cache, "missing", lambda kernels: 1)
    small = plain.Small("entropy")
    small.left = plain.SECONDS - 2.0 * plain.LOADING
    small(np.full(4, 0.25))
    assert small.left > 0.0


def test_other_types_are_compiled_with_a_warning():
    ones = np.ones(2, dtype=np.float32)
    with pytest.warns(dispatchers.UndeclaredTypes, match="kernel log_ratios is not declared for"):
        plain.Small("log_ratios")(ones, ones, np.empty(2))


def test_it_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(plain.Small("entropy"))) is kernels.entropy


def test_small_questions_import_no_numba_no_scipy_and_no_releases():
    code = (
        "import sys, fastpriv as fp\n"
        "print(fp.dp_level([[0.9, 0.1], [0.2, 0.8]]))\n"
        "fp.audit(fp.HammingChannel(3, 2, 1.0), fp.Product.iid([0.7, 0.3], 3))\n"
        "print({'numba', 'scipy', 'fastpriv.releasing'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    level, loaded = done.stdout.splitlines()
    assert float(level) == fp.dp_level([[0.9, 0.1], [0.2, 0.8]])
    assert loaded == "set()"


def test_a_record_with_one_value_is_compared_with_itself():
    # Machine code read past the end of the matrix.
    axes = np.array([[1, 1]])
    assert plain.Small("matrix_spread")(np.full((1, 9), 1.0 / 9.0), 0.0, 1.0, axes, 0, 9) == 0.0
    one = fp.ProductChannel([[[0.25, 0.5, 0.25]]])
    assert fp.dp_level(fp.compose(one, one)) == 0.0


def test_a_helper_does_not_take_the_flags_of_its_first_caller():
    import numba

    from fastpriv.kernels import declare

    @declare.helper()
    def multiplied_and_added(a, b, c):
        return a * b + c

    def caller(a, b, c):
        return multiplied_and_added(a, b, c)

    for flags in ({"fastmath": True}, {}):  # the first call compiles the helper
        compiled = numba.njit(**flags)(caller)
        rng = np.random.default_rng(1)
        for a, b in rng.uniform(1.0, 2.0, (100, 2)).tolist():
            assert compiled(a, b, -a * b) == 0.0  # a fused product would leave its rounding error
