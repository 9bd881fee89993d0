"""Many threads, and children after a fork: the same numbers and no abort."""

import os
import subprocess
import sys

import pytest

from fastpriv._core import threads

CODE = """
import os, sys, threading
import numpy as np
import fastpriv as fp

rng = np.random.default_rng(0)
matrix = rng.dirichlet(np.ones(600), 512)
wide = rng.random(2**17); wide /= wide.sum()
dense = fp.Dense(wide, [2] * 17)
small = fp.Product([[0.3, 0.7], [0.2, 0.3, 0.5]])
jobs = [
    lambda: fp.dp_level(fp.Channel(matrix, [2] * 9)),
    lambda: fp.mutual_information(matrix, np.full(512, 1 / 512)),
    lambda: fp.mutual_information(fp.HammingChannel(17, 2, 1.0), dense),
    lambda: float(fp.HammingChannel(17, 2, 0.5).output(dense).pmf()[12345]),
    lambda: dense.epsilon_x(),
    lambda: dense.entropy(),
    lambda: fp.identifiability_level(fp.PosteriorChannel(small, 2.0), small),
    lambda: fp.Exchangeable.beta_binomial(60, 0.5, 0.8).epsilon_tilde(),
]
truth = [job() for job in jobs]

def hammer():
    results, errors = {}, []
    def work(seed):
        try:
            for j in np.random.default_rng(seed).permutation(np.repeat(np.arange(len(jobs)), 3)):
                results[seed, int(j)] = jobs[j]()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not errors, errors
    assert len(results) == 16 * len(jobs)
    assert all(value == truth[j] for (_, j), value in results.items())

hammer()
child = os.fork()
if child == 0:
    try:
        hammer()
    except BaseException as error:
        print("child:", error, file=sys.stderr)
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
hammer()
print("same numbers")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("layer", ["default", "workqueue", "omp", "tbb"])
def test_sixteen_threads_before_and_after_a_fork(layer):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", CODE],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_THREADING_LAYER": layer},
        timeout=300,
    )
    assert done.stdout.strip() == "same numbers", done.stderr


def test_algebra_is_serial_inside_and_as_before_outside():
    pytest.importorskip("scipy.linalg")
    read = [get for get, _ in threads._openblas()]
    before = [get() for get in read]
    with threads.serial_algebra():
        with threads.serial_algebra():
            assert [get() for get in read] == [1] * len(read)
        assert [get() for get in read] == [1] * len(read)
    assert [get() for get in read] == before
