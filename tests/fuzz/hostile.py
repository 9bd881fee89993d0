"""Bad input for every public function: ``python -m tests.fuzz.hostile --minutes 10``.

A good call of every function stands in ``calls.py``; a case replaces one or two of its arguments by
something hostile. What may happen: an answer without NaN, or an error of ours in one sentence.
Anything else is a violation: another exception, a warning, a NaN. With ``NUMBA_DISABLE_JIT=1``
kernels are plain Python, and only an index beyond the end of an array counts.
"""

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import inspect
import math
import re
import signal
import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

import fastpriv as fp
from fastpriv.errors import FastprivError, described
from fuzz.calls import GOOD, PAIR, PRIOR, PROFILE, P, W

#: Priors that are right and hard: zeros, denormals, nearly uniform, periodic, one row, one value.
ODD = [
    fp.Dense([0.0, 0.5, 0.0, 0.5], [2, 2]), fp.Dense([1.0, 5e-324, 1e-300, 1e-16], [2, 2]),
    fp.Dense([0.25, 0.25000000000000006, 0.24999999999999994, 0.25], [2, 2]), fp.Uniform(1, 1),
    fp.Product([[1.0, 0.0], [0.5, 0.5]]), fp.Product([[1.0], [1e-320, 1.0]]),
    fp.Markov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 3),
    fp.Markov([0.5, 0.5], [[1.0, 0.0], [1e-17, 1.0]], 2),
    fp.Exchangeable([0.0, 1.0, 0.0]), fp.Exchangeable([1.0 - 1e-16, 5e-324, 1e-16]),
    fp.Product.iid([1e-160, 1.0], 3),
]  # fmt: skip


def _fixed(array):
    array.flags.writeable = False
    return array


_ENDLESS: list = [0.5]
_ENDLESS.append(_ENDLESS)


class Mute:
    """An object that cannot be written."""

    def __repr__(self):
        raise ValueError("no text")


class Long(Mute):
    """An object whose text is ten million characters on two lines."""

    def __repr__(self):
        return "x\n" + "x" * 10**7


def _nested(times):
    return functools.reduce(lambda inner, _: [inner], range(times), [0.5])


HOSTILE = [
    [[[[[0.5]]]]], _nested(60), _nested(5000), (_nested(5000), 1.0), {"a": _nested(5000)}, _ENDLESS,
    Mute(), Long(), [Mute()], [[Long(), 1.0]], {"dp": Mute()}, -(10**30), [10**5000],
    fractions.Fraction(10**5000, 3), np.float64(-0.3), np.float64(math.nan), [np.float64(0.7)] * 2,
    memoryview(np.array([0.4, 0.6])), memoryview(np.array([[0.5, 0.5], [0.2, 0.8]])),
    _fixed(np.array([0.4, 0.6])), _fixed(np.array([[0.5, 0.5], [0.2, 0.8]])),
    _fixed(np.array([0, 1])), np.array([0.4, 0.6], dtype=">f8"), np.float16([[0.5, 0.5], [1, 0]]),
    np.asfortranarray([[0.5, 0.5], [0.2, 0.8]]), np.eye(2, dtype=int), np.eye(2) > 0,
    np.array([[0.4, 0.2], [0.6, 0.8]])[:, 0], pd.Series([0.4, 0.6]), pd.DataFrame(np.eye(2)),
    np.array([1e-310, 1.0]), np.array([[1e-310, 1.0], [5e-324, 1.0]]),
    None, True, False, math.nan, math.inf, -math.inf, -1, 0, -0.0, 0.0, 1, 2, 3, 0.5, 1e-320, 1e308,
    10**400, -(10**400), [10**400], 2**63,
    2**31, 1.5, "", "dp", "1", "nan", b"x", (), [], {}, set(), [[]], [[[]]],
    [math.nan], [math.inf, 1.0], [[math.nan, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0]], [0.5, 0.6],
    [-0.5, 1.5], [[2.0, -1.0], [0.5, 0.5]], [[0.5, 0.5]], [[1.0]], [1.0], [0.0, 0.0], [[0.0, 0.0]],
    [None], ["a", "b"], [["a"]], [1, [2]], {"a": 1}, {0: 5}, {5: 0}, {-1: 0}, object(), int, len,
    1j,
    [1j, 0], np.array(0.5), np.array([0.5, 0.5], dtype=object), np.zeros((0, 2)), np.zeros((2, 0)),
    np.ones((2, 2, 2, 2)), np.array(["x"]), np.float32(0.1), np.int8(-3), np.int8(2), np.int32(1),
    np.uint8(1), np.uint64(3), np.float16(0.5), np.bool_(True), np.longdouble(0.3),
    np.nan * np.ones((2, 2)),
    np.datetime64("2020-01-01"), datetime.date(2020, 1, 1), decimal.Decimal("0.1"),
    decimal.Decimal("NaN"), fractions.Fraction(1, 3), range(2), iter([0.5, 0.5]),
    np.ma.array([1.0]),
    W, PAIR, PRIOR, P, fp.Uniform(3, 2), fp.HammingChannel(40, 2, 1.0), fp.Uniform(40, 2), PROFILE,
    fp.PriorSet.all(2), *ODD, np.eye(3), np.eye(2)[::-1], np.random.default_rng(0), "\x00",
    "a" * 300,
]  # fmt: skip


#: Arguments that may be functions of the caller.
CALLED = ("make", "distance", "predictor")
#: Options that name files or write to the terminal: the search for bad commands tries those.
WRITTEN = ("out", "report", "path", "ledger", "overwrite", "progress")
#: Seconds after which a call is stopped; a busy machine is not a hang.
_HANGS = 300


def _stop(signum, frame):
    raise TimeoutError(f"no answer after {_HANGS} s")


@functools.cache
def places(function):
    """Return the names of the arguments of a good call, and of options that it leaves out."""
    options = inspect.signature(function).parameters.values()
    named = [p.name for p in options if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return list(dict.fromkeys([*GOOD[function], *(name for name in named if name not in WRITTEN)]))


def draw(seed, number):
    """Return a function and its arguments, one or two of them hostile."""
    rng = np.random.default_rng([seed, number])
    function = list(GOOD)[rng.integers(len(GOOD))]
    arguments = dict(GOOD[function])
    for name in rng.permutation(places(function))[: 1 + (rng.integers(5) == 0)]:
        value = HOSTILE[rng.integers(len(HOSTILE))]
        arguments[str(name)] = iter([0.5, 0.5]) if isinstance(value, type(iter([]))) else value
    return function, arguments


def outcome(function, arguments):
    """Return None, or what is wrong with what a call does."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", fp.errors.GapWarning)  # it is meant: the gap is not met
        if numba.config.DISABLE_JIT:  # compiled kernels divide by zero in silence
            warnings.simplefilter("ignore", RuntimeWarning)
        signal.alarm(_HANGS)
        try:
            result = function(**arguments)
        except FastprivError as error:
            return _sentence(str(error))
        except Exception as error:
            if numba.config.DISABLE_JIT and not isinstance(error, IndexError):
                return None  # what Python does otherwise than compiled code
            if any(callable(arguments.get(name)) for name in CALLED):
                return None  # what a function of the caller raises is the caller's
            return f"{type(error).__name__}: {str(error)[:120]}"
        finally:
            signal.alarm(0)
    return "NaN" if _has_nan(result) else None


#: Words of Python and numpy, which tell a reader nothing about the argument.
_WORDS = (
    "np.", "array(", "<object", "<class", "<function", " at 0x", "Traceback", "NoneType",
    "unhashable", "not subscriptable", "object is not", "object has no",
    "unsupported operand", "KeyError", "ValueError", "TypeError",
)  # fmt: skip
#: More than any sentence needs.
_LONGEST = 400


def _sentence(text):
    """Return what is wrong with the text of an error, or None."""
    if not text or "\n" in text or len(text) > _LONGEST:
        return f"not one sentence: {text[:120]!r}"
    found = [word for word in _WORDS if word in text]
    return f"Python's words, {found[0]}: {text[:160]!r}" if found else None


def _has_nan(result):
    if isinstance(result, float | np.ndarray):
        values = np.asarray(result)
        return values.dtype.kind == "f" and bool(np.isnan(values).any())
    if isinstance(result, fp.Bracket):
        return math.isnan(result.lower) or math.isnan(result.upper)
    return False


def search(seed, minutes, cases):
    """Call until time or number runs out; return how many, and what went wrong by kind."""
    start, number, wrong = time.monotonic(), 0, collections.defaultdict(list)
    signal.signal(signal.SIGALRM, _stop)
    while number < cases and time.monotonic() - start < 60.0 * minutes:
        function, arguments = draw(seed, number)
        before = time.process_time()  # of this process: a busy machine is not a hang
        problem = outcome(function, arguments)
        number += 1
        if time.process_time() - before > 20.0:
            problem = problem or f"took {time.process_time() - before:.0f} s"
        if problem:
            shape = re.sub(r"\d+", "#", problem)[:70]
            wrong[function.__qualname__, shape].append((number - 1, problem, arguments))
    return number, wrong, time.monotonic() - start


def main():
    """Run the search as a command: exit code 1 where something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, wrong, seconds = search(options.seed, options.minutes, options.cases)
    for (name, _), items in sorted(wrong.items(), key=lambda item: item[0]):
        case, problem, arguments = items[0]
        shown = ", ".join(f"{k}={described(v)}" for k, v in arguments.items())
        print(f"{name}({shown}), case {case}, {len(items)} like it:\n    {problem}")
    print(f"{number} calls in {seconds:.0f} s: {sum(map(len, wrong.values()))} went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
