"""Cross-examination: ``python -m tests.fuzz.cross --minutes 10 --seed 1 --workers 2``.

Calls that compute the same quantity are asked together, and their answers must meet: ``routes.py``
lists them. Every public function is also called with rows that are nearly equal, with costs of
zero, with numpy scalars, with huge integers and with budgets at their ends. It must give the same
answer as for plain numbers, or one sentence; never a NaN, a warning or a raw error.
"""

import collections
import json
import math
import re
import signal
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import fastpriv as fp
from fastpriv.errors import FastprivError, described
from fuzz import hostile, numbers, routes, runs, shrink, spans, specs
from fuzz.calls import GOOD
from fuzz.judging import Violation

#: Calls of a public function for every instance.
CALLS = 4
#: Instances that are handed to a worker in turn.
TOGETHER = 8
#: Seconds of processor time that no call of a public function takes.
SLOW = 20.0
#: More characters than a sentence about one argument needs.
LONGEST = 400


# Instances: a channel and a prior, with a level, a probability and a share.


def instance(seed, number):
    """Return one instance, the same for a seed and a number whatever came before."""
    rng = np.random.default_rng([seed, number])
    sizes = list(specs.SPACES[rng.integers(len(specs.SPACES))])
    hard = rng.integers(3) == 0
    channel = specs.random_channel(rng, sizes) if hard else _channel(rng, sizes)
    prior = specs.random_prior(rng, sizes) if hard else _prior(rng, sizes)
    edges = (0.0, 1.0, 0.5, math.nextafter(1.0, 0.0), 1e-9, 1.0 - 1e-9)
    share = edges[rng.integers(len(edges))] if rng.integers(4) == 0 else rng.uniform()
    near = rng.uniform(0.0, 3.0) if rng.integers(2) else 10.0 ** rng.uniform(-12, 1)
    return {
        "channel": channel,
        "prior": prior,
        "epsilon": numbers.epsilon(rng) if hard else float(near),
        "delta": numbers.delta(rng) if hard else float(10.0 ** rng.uniform(-12, 0)),
        "share": float(share),
    }


def law_on_grid(rng, size, bits):
    """Return probabilities that are multiples of 2^-bits and sum to one exactly."""
    weights = rng.dirichlet([1.0] * size) if rng.integers(4) else np.full(size, 1.0 / size)
    counts = [int(w * 2**bits) for w in weights[1:]]
    return [c / 2**bits for c in (2**bits - sum(counts), *counts)]


def rows_on_grid(rng, rows, columns, bits):
    """Return rows on a grid that are equal, 1e-12 to 1e-6 apart, or far apart."""
    made, apart = [law_on_grid(rng, columns, bits)], 10.0 ** rng.uniform(-12, -6)
    near = bool(rng.integers(2)) and bits > 40 and columns > 1
    while len(made) < rows:
        row = list(made[0]) if near or rng.integers(5) == 0 else law_on_grid(rng, columns, bits)
        if near:
            up, down = rng.permutation(columns)[:2]
            step = int(apart * rng.uniform(0.0, 1.0) * 2**bits) / 2**bits
            if row[down] > step:
                row[up], row[down] = row[up] + step, row[down] - step
        made.append(row)
    return made


def _channel(rng, sizes):
    epsilon = float(rng.uniform(0, 4) if rng.integers(2) else 10.0 ** rng.uniform(-12, 0))
    if len(sizes) == 1 and sizes[0] > 1 and rng.integers(2):
        kind = list(specs.LOCAL)[rng.integers(len(specs.LOCAL))]
        return {"kind": kind, "k": sizes[0], "epsilon": epsilon}
    if rng.integers(8) == 0:
        return {"kind": "columns", "sizes": sizes, "epsilon": epsilon}
    if sizes == [4] and rng.integers(4) == 0:
        return {"kind": "record", "sizes": sizes, "epsilon": epsilon}
    spec = specs.random_channel(rng, sizes)
    bits = int((10, 17, 52)[rng.integers(3)])
    if spec["kind"] == "dense":
        columns = int(rng.integers(2, 4))
        return spec | {"matrix": rows_on_grid(rng, math.prod(sizes), columns, bits)}
    if spec["kind"] == "query":
        return spec | {"matrix": rows_on_grid(rng, max(spec["values"]) + 1, 2, bits)}
    if spec["kind"] == "product":
        factors = [rows_on_grid(rng, m, int(rng.integers(2, 4)), bits) for m in sizes]
        return spec | {"factors": factors, "bits": bits}
    spec["epsilon"] = epsilon
    if "law" in spec:
        spec["law"] = _prior(rng, sizes)
        if spec["kind"] == "posterior":
            spec["epsilon"] += specs.build_prior(spec["law"]).epsilon_tilde() * (1 + 1e-9)
    return spec


def _prior(rng, sizes):
    bits, n, m = int((10, 17, 52)[rng.integers(3)]), len(sizes), sizes[0]
    kind = rng.integers(6)
    if kind == 0 and len(set(sizes)) == 1:
        chain = [_full(rng, m, bits) for _ in range(m)]
        made = {"kind": "markov", "initial": _full(rng, m, bits), "transition": chain, "n": n}
        if m > 1 and rng.integers(3) == 0:
            return {"kind": "hidden", "chain": made, "epsilon": float(rng.uniform(0, 3))}
        return made
    if kind == 1 and set(sizes) == {2}:
        return {"kind": "exchangeable", "weights": _full(rng, n + 1, bits)}
    if kind == 2 and len(set(sizes)) == 1:
        return {"kind": "uniform", "n": n, "m": m}
    if kind in (3, 4):
        marginals = [_full(rng, size, bits) for size in sizes]
        return {"kind": "product", "marginals": marginals}
    return {"kind": "dense", "sizes": sizes, "pmf": _full(rng, math.prod(sizes), bits)}


def _full(rng, size, bits):
    law = law_on_grid(rng, size, bits)
    return law if min(law) > 0.0 else [1.0 / size] * size


# Public functions with arguments that are right, or nearly so.

FUNCTIONS = list(GOOD)
NUMPY = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16,
    "longdouble": np.longdouble, "int8": np.int8, "int16": np.int16, "int32": np.int32,
    "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32,
    "uint64": np.uint64, "bool_": np.bool_, "0-d array": np.array,
}  # fmt: skip
HUGE = (10**400, -(10**400), 2**63, 2**64, 10**30)
ENDS = (
    0, 1, 0.0, 1.0, 0.5, 5e-324, 1e-300, 1e-17, 1e-12, math.log(2.0), math.log(4.0),
    math.nextafter(math.log(2.0), 1.0), math.nextafter(math.log(4.0), 2.0),
    math.nextafter(math.log(4.0), 0.0), math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0),
    math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0), 0.75, 2.0, 700.0, 745.0, 1e300,
)  # fmt: skip
COSTS = ("metric", "distance", "gain", "utilities", "neighbours")
#: Calls whose answers are drawn, or hold the time.
DRAWN = {fp.release, fp.preview_release, fp.estimate_frequencies, fp.accounting.Ledger.from_json}


def _is_number(value):
    return isinstance(value, int | float)


@cache
def calls_with(kind):
    """Return (function, argument) of all places where a kind of argument may be put."""
    found = []
    for k, function in enumerate(FUNCTIONS):
        for name in hostile.places(function):
            value = GOOD[function].get(name)
            matrix = value is hostile.W or value is hostile.PAIR
            fits = {
                "numpy scalars": _is_number(value),
                "huge integers": (_is_number(value) and value == int(value)) or name in ("k", "n"),
                "budgets at their ends": _is_number(value),
                "nearly equal rows": matrix,
                "zero costs": name in COSTS,
            }
            if fits[kind]:
                found.append((k, name))
    return found


KINDS = (
    "numpy scalars", "huge integers", "budgets at their ends", "nearly equal rows", "zero costs"
)  # fmt: skip


def call_of(seed, number, which):
    """Return the specification of one call of a public function."""
    rng = np.random.default_rng([seed, number, which + 1])
    kind = KINDS[rng.choice(len(KINDS), p=[0.3, 0.2, 0.2, 0.2, 0.1])]
    places = calls_with(kind)
    index, name = places[rng.integers(len(places))]
    spec = {"question": kind, "function": index, "argument": name}
    if kind == "numpy scalars":
        spec["value"] = list(NUMPY)[rng.integers(len(NUMPY))]
    elif kind == "huge integers":
        spec["value"] = HUGE[rng.integers(len(HUGE))]
    elif kind == "budgets at their ends":
        spec["value"] = ENDS[rng.integers(len(ENDS))]
    else:
        # 2 or 4 rows, as the function's good call has them
        rows = 4 if GOOD[FUNCTIONS[index]].get(name) is hostile.PAIR else 2
        rows = 4 if GOOD[FUNCTIONS[index]].get("prior") is hostile.PRIOR else rows
        if kind == "nearly equal rows":
            spec["value"] = rows_on_grid(rng, rows, 2, 52)
        else:
            spec["value"] = (rng.integers(0, 2, (rows, rows)) * 1.0).tolist()
            if rng.integers(2):
                spec["value"] = [[0.0] * rows] * rows
            spec["sure"] = bool(rng.integers(2))
    return spec


@cache
def good_answer(index):
    """Return what the good call answers."""
    function = FUNCTIONS[index]
    return function(**GOOD[function])


def called(spec):
    """Return what is wrong with one call, or None."""
    function = FUNCTIONS[spec["function"]]
    arguments, name = dict(GOOD[function]), spec["argument"]
    if spec["question"] == "numpy scalars":
        return _called_with_numpy(spec, function, arguments)
    value = spec["value"]
    if spec["question"] == "nearly equal rows" and arguments[name] is hostile.PAIR:
        value = fp.Channel(value, fp.Space([2, 2]))
    arguments[name] = value
    if spec.get("sure") and arguments.get("prior") is not None:  # nobody pays most of the costs
        sure = [1.0] + [0.0] * (len(value) - 1)
        arguments["prior"] = sure if len(value) == 2 else fp.Dense(sure, [2, 2])
    return _outcome(function, arguments)


def _outcome(function, arguments):
    for _ in range(2):  # the first call may have compiled kernels
        before = time.process_time()
        problem = hostile.outcome(function, arguments)
        seconds = time.process_time() - before
        if problem is not None or seconds <= SLOW:
            return problem
    return f"took {seconds:.0f} s"


def _called_with_numpy(spec, function, arguments):
    value = arguments[spec["argument"]]
    with runs.strict():
        try:
            same = NUMPY[spec["value"]](value)
        except (OverflowError, ValueError, RuntimeWarning):
            return None
        if isinstance(value, bool) != (spec["value"] == "bool_") or float(same) != value:
            return None
        allowed = spec["value"] == "0-d array" or (
            isinstance(value, int) and not isinstance(same, np.integer | np.bool_)
        )
        arguments[spec["argument"]] = same
        try:
            given = function(**arguments)
        except FastprivError as error:
            return None if allowed else f"refused: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:120]}"
    if function in DRAWN:
        return None
    good = good_answer(spec["function"])
    return None if _alike(given, good) else f"{described(given)}, not {described(good)}"


def _alike(given, good):
    if isinstance(good, fp.accounting.Receipt):  # it holds the time
        return given.charged == good.charged
    if isinstance(good, float | np.ndarray | fp.Bracket):
        return bool(np.all(given == good))
    return type(given) is type(good) and (given == good or repr(given) == repr(good))


# Cases.


def cases_of(seed, number):
    """Yield the cases about one instance."""
    rng = np.random.default_rng([seed, number, 0])
    given = instance(seed, number)
    asked = rng.uniform(size=len(routes.QUANTITIES))
    for (name, quantity), draw in zip(routes.QUANTITIES.items(), asked, strict=True):
        if draw < quantity.share:
            yield {"question": name} | given
    for which in range(CALLS):
        yield call_of(seed, number, which)


_LAST = []


def _made(spec):
    """Return the case of a specification, built once for one instance."""
    if not (_LAST and all(_LAST[0].spec[k] is v for k, v in spec.items() if k != "question")):
        _LAST[:] = [spans.Case(spec)]
    return _LAST[0]


#: What was asked: an answer of each kind.
ASKED, REFUSED, UNFIT = "asked", "refused", "unfit"


def answer(spec):
    """Return a violation, or the kind of answer that one case got."""
    if spec["question"] not in routes.QUANTITIES:
        problem = called(spec)
        return Violation(spec, _shape(problem), problem) if problem else ASKED
    quantity = routes.QUANTITIES[spec["question"]]
    with runs.strict():
        try:
            case = _made(spec)
            if not quantity.fits(case):
                return UNFIT
            spans = quantity.ask(case)
        except FastprivError:
            return REFUSED
        except Exception as error:
            return Violation(spec, f"raised {type(error).__name__}", repr(error)[:300])
    return judged(spec, quantity, spans)


def judged(spec, quantity, spans):
    """Return the violation where two spans do not meet, or are none."""
    for span in spans:
        if not span.low <= span.high:
            return Violation(spec, f"{span.route} is no span", repr(span))
    spans = [span.widened(quantity.moved) for span in spans]
    for i, first in enumerate(spans):
        for second in spans[i + 1 :]:
            apart = first.low > second.high or (not quantity.ordered and second.low > first.high)
            if apart:
                kind = f"{first.route} and {second.route}"
                return Violation(spec, _shape(kind), f"{_shown(first)} and {_shown(second)}")
    return ASKED


def _shown(span):
    return f"{span.route} [{span.low!r}, {span.high!r}]"


def _shape(text):
    """Return a text without its numbers, so that violations of one kind count together."""
    return re.sub(r"[-+.\de]*\d[-+.\de]*", "#", text)[:90]


def title(spec):
    """Return the name of a case in the report."""
    if "function" not in spec:
        return spec["question"]
    name = getattr(FUNCTIONS[spec["function"]], "__qualname__", "?")
    return f"{spec['question']}: {name}({spec['argument']})"


# The search.


def search(seed, minutes, cases, worker=0, workers=1):
    """Ask until time or number runs out; return counts, violations and seconds by question."""
    signal.signal(signal.SIGALRM, hostile._stop)
    start, counts, broken = time.monotonic(), collections.Counter(), {}
    seconds, total = collections.Counter(), 0
    for number in runs.numbers_of(worker, workers, TOGETHER):
        if total >= cases or time.monotonic() - start >= 60.0 * minutes:
            break
        for spec in cases_of(seed, number):
            before = time.process_time()
            found = answer(spec)
            seconds[spec["question"]] += time.process_time() - before
            if found is UNFIT:
                continue
            counts[spec["question"], REFUSED if found is REFUSED else ASKED] += 1
            total += 1
            if isinstance(found, Violation):
                broken.setdefault((title(spec), found.kind), []).append((number, found))
    return counts, broken, seconds


def searched(seed, minutes, cases, workers=1):
    """Search in one process or in several, which take bundles of instances in turn."""
    each = -(-cases // workers)
    return runs.in_processes(search, [(seed, minutes, each, k, workers) for k in range(workers)])


def smallest(violation):
    """Return a violation of the same kind with simpler numbers."""
    if "channel" not in violation.case:
        return violation

    def again(spec):
        found = answer(spec)
        return found if isinstance(found, Violation) else None

    return shrink.shrunk(violation, again, tries=150)


def report(counts, broken, seconds, elapsed, shrinking=True):
    """Print what was asked and what was found."""
    print(f"{'question':36}{'cases':>9}{'refused':>9}{'ms each':>9}")
    for name in sorted({question for question, _ in counts}):
        asked, refused = counts[name, ASKED], counts[name, REFUSED]
        each = 1e3 * seconds[name] / max(1, asked + refused)
        print(f"{name:36}{asked + refused:9}{refused:9}{each:9.2f}")
    for (name, kind), items in sorted(broken.items()):
        number, first = items[0]
        least = smallest(first) if shrinking else first
        print(f"\n{name}, {kind}: {len(items)} cases, first in instance {number}; smallest:")
        print(f"    {least.answer}")
        print(f"    {json.dumps(least.case)}")
    total, wrong = sum(counts.values()), sum(map(len, broken.values()))
    refused = sum(v for (_, kind), v in counts.items() if kind is REFUSED)
    cpu = sum(seconds.values())
    print(
        f"\n{total} cases in {elapsed:.0f} s ({cpu:.0f} s of processor, "
        f"{1e3 * cpu / max(1, total):.2f} ms each): {wrong} violations of {len(broken)} kinds, "
        f"{refused} refused in words"
    )


def main():
    """Run the cross-examination as a command: exit code 1 where two answers contradict."""
    parser = runs.parser("python -m tests.fuzz.cross", __doc__)
    parser.add_argument(
        "--no-shrinking", action="store_true", help="print cases as they were drawn"
    )
    options = parser.parse_args()
    start = time.monotonic()
    found = searched(options.seed, options.minutes, options.cases, options.workers)
    report(*found, time.monotonic() - start, not options.no_shrinking)
    return 1 if found[1] else 0


if __name__ == "__main__":
    from fuzz.cross import main as run  # workers must find the search in a module

    sys.exit(run())
