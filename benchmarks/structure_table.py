"""What is answered in structure: every measure, for every channel and prior.

    python benchmarks/structure_table.py [--sizes] [--only TEXT] [--save docs/guides/structure.json]

Each question is asked at a size whose list of databases no machine holds. A number (or a bracket
of relative width below 1e-6) is an exact answer in structure, a wider bracket is a bracket, and a
refusal means that the answer needs the list. ``--sizes`` also measures the largest number of rows
that is answered within a second. The documentation shows the file that ``--save`` writes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastpriv as fp
from fastpriv._structure.types import Blocks, classes_against, types_of
from fastpriv.channels.types import TypeChannel

#: Rows of the databases that are asked about, for each number of values.
ROWS = {2: 40, 3: 26}
#: Rows under a dense prior: a vector over databases fits, a matrix does not.
LISTED = 14
#: Rows of three values of a mechanism on types, of which there are C(n + 8, 8) classes.
ON_TYPES = 14
#: Relative width up to which a bracket counts as a number.
NARROW = 1e-6
#: Sizes that are tried for the largest one within a second.
SIZES = (8, 12, 16, 20, 26, 40, 100, 400, 1000, 2000, 10_000, 100_000, 1_000_000)
SECONDS = 1.0
#: Rows of a first question, which loads kernels.
_FIRST = 3
#: Seconds and bytes that one question may take.
LIMITS = 10.0, 1 << 30

BIT = [[0.8, 0.2], [0.35, 0.65]]
CHAIN = [[0.7, 0.3], [0.4, 0.6]]


@cache
def prior(kind: str, n: int) -> Any:
    """Make a prior of n rows."""
    if kind == "uniform":
        return fp.Uniform(n, 2)
    if kind == "independent, alike":
        return fp.Product.iid([0.6, 0.4], n)
    if kind == "independent":
        return fp.Product([[0.6, 0.4], [0.3, 0.7]] * (n // 2) + [[0.5, 0.5]] * (n % 2))
    if kind == "exchangeable":
        return fp.Exchangeable.beta_binomial(n, 2.0, 3.0)
    if kind == "exchangeable, m = 3":
        c = np.indices((n + 1, n + 1))
        return fp.Exchangeable(_normed(np.where(c.sum(axis=0) <= n, 1.0 + c[0] / n, 0.0)))
    if kind == "Markov":
        return fp.Markov([0.5, 0.5], CHAIN, n)
    return fp.Dense(_normed(np.random.default_rng(n).random(2**n) + 0.5), [2] * n)


def _normed(weights: Any) -> Any:
    return weights / weights.sum()


PRIORS = (
    "uniform",
    "independent, alike",
    "independent",
    "exchangeable",
    "exchangeable, m = 3",
    "Markov",
    "dense",
)


def values(kind: str) -> int:
    """Return the number of values of a row."""
    return 3 if "m = 3" in kind else 2


@cache
def geometric(answers: int) -> Any:
    """Return the noise of a count, cut at its ends."""
    k = np.arange(answers)
    laws = np.exp(-0.5 * np.abs(k[:, None] - k))
    return laws / laws.sum(axis=1, keepdims=True)


@cache
def type_channel(n: int, m: int) -> Any:
    """Return E_d as a mechanism on types."""
    types = types_of(Blocks.single(n, m))
    classes = [classes_against(kind, types) for kind in types.counts]
    scale = -n * np.log1p((m - 1) * np.exp(-1.0))
    return TypeChannel(types, classes, [np.exp(scale - part.distance) for part in classes])


@cache
def channel(kind: str, law: str, n: int) -> Any:
    """Make a channel for n rows, at home with a prior where it depends on one."""
    m = values(law)
    if kind == "E_d":
        return fp.HammingChannel(n, m, 1.0)
    if kind == "E_i of the prior":
        spread = prior(law, n).epsilon_x()
        return fp.PosteriorChannel(prior(law, n), float(np.log(2.0 * m * n)) + spread)
    if kind == "tilted prior":
        return fp.TiltedChannel(prior(law, n), 1.0)
    if kind == "product":
        return fp.ProductChannel([BIT if m == 2 else geometric(3)] * n)
    if kind == "count":
        return fp.QueryChannel.sum([list(range(m))] * n, geometric((m - 1) * n + 1))
    if kind == "histogram":
        return fp.QueryChannel.histogram(
            n, m, geometric((n + 1) * (n + 2) // 2 if m > 2 else n + 1)
        )
    return type_channel(n, m)


CHANNELS = (
    "E_d",
    "E_i of the prior",
    "tilted prior",
    "product",
    "count",
    "histogram",
    "on types",
)

#: Measures of a channel and a prior.
UNDER_PRIOR: dict[str, Callable[[Any, Any], Any]] = {
    "identifiability_level": fp.identifiability_level,
    "distortion": fp.distortion,
    "mutual_information": fp.mutual_information,
    "leakage_factor": fp.leakage_factor,
    "worst_leakage_factor": fp.worst_leakage_factor,
    "pml_level": fp.pml_level,
    "pml of one output": lambda W, p: fp.pml(W, p, y=[0] * W.output_space.n),
    "information_privacy_level": fp.information_privacy_level,
    "maximal_correlation": fp.maximal_correlation,
    "dp_level": lambda W, p: fp.dp_level(W),
    "strong_dp_level": lambda W, p: fp.strong_dp_level(W),
    "maximal_leakage": lambda W, p: fp.maximal_leakage(W),
    "contraction_coefficient": lambda W, p: fp.contraction_coefficient(W),
}
#: What does not depend on the prior, unless the channel does.
ALONE = ("dp_level", "strong_dp_level", "maximal_leakage", "contraction_coefficient")
#: Questions about a prior alone.
OF_PRIOR: dict[str, Callable[[Any], Any]] = {
    "entropy": lambda p: p.entropy(),
    "epsilon_x": lambda p: p.epsilon_x(),
    "epsilon_hat": lambda p: p.epsilon_hat(),
    "epsilon_tilde": lambda p: p.epsilon_tilde(),
    "solve_pd_dp from epsilon_hat": lambda p: fp.solve_pd_dp(p, p.epsilon_hat() + 0.1),
    "solve_pd_i": lambda p: fp.solve_pd_i(p, float(np.log(4.0 * p.space.n)) + p.epsilon_x()),
    "privacy_level dp": lambda p: fp.privacy_level(p, 0.01, "dp"),
    "privacy_level identifiability": lambda p: fp.privacy_level(p, 0.01, "identifiability"),
}


class Cell(NamedTuple):
    """One question: a measure, for a channel ("" where none is asked for) and a prior."""

    measure: str
    channel: str
    prior: str

    def ask(self, n: int) -> Any:
        """Return the answer for n rows."""
        law = prior(self.prior, n)
        if not self.channel:
            return OF_PRIOR[self.measure](law)
        return UNDER_PRIOR[self.measure](channel(self.channel, self.prior, n), law)

    @property
    def rows(self) -> int:
        """Return the size at which the question is asked."""
        if self.prior == "dense":
            return LISTED
        if self.channel == "on types" and values(self.prior) == 3:
            return ON_TYPES
        return ROWS[values(self.prior)]

    @property
    def sensible(self) -> bool:
        """Whether there is such a question."""
        if self.measure == "distortion" and self.channel in ("count", "histogram"):
            return False
        return (
            self.measure not in ALONE
            or self.channel in CHANNELS[1:3]
            or self.prior
            in (
                "uniform",
                "exchangeable, m = 3",
            )
        )


def kind(cell: Cell) -> str:
    """Return what kind of answer there is."""
    try:
        answer = cell.ask(cell.rows)
    except fp.TooLarge:
        return "matrix" if cell.prior == "dense" else "dense only"
    except MemoryError:
        return "memory"
    if isinstance(answer, fp.Bracket):
        scale = max(abs(answer.upper), 1e-300)
        if answer.upper - answer.lower > NARROW * scale:
            return "bracket"
    return "vector" if cell.prior == "dense" else "exact"


def largest(cell: Cell) -> int:
    """Return the largest number of rows that is answered within a second, 0 if none is."""
    best = 0
    for n in SIZES:
        start = time.perf_counter()
        try:
            cell.ask(n)
        except (fp.FastprivError, MemoryError):
            break
        if time.perf_counter() - start > SECONDS:
            break
        best = n
    return best


def apart(task: Callable[[Cell], Any], cell: Cell, seconds: float = LIMITS[0]) -> Any:
    """Run a task in a process of its own, with limits on time and memory, on a POSIX system."""
    import resource

    def run(end: Any) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_AS, (4 * used + LIMITS[1], hard))
        end.send(task(cell))

    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=run, args=(there,))
    child.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else "time"
    except EOFError:
        return "memory"
    finally:
        child.kill()
        child.join()


def told(sizes: bool = False, only: str = "") -> Iterator[dict[str, Any]]:
    """Return the answer to every question, with the largest size within a second if asked for."""
    for mechanism in ("", *CHANNELS):
        for measure in UNDER_PRIOR if mechanism else OF_PRIOR:
            for each in PRIORS:
                cell = Cell(measure, mechanism, each)
                if cell.sensible and only in "/".join(cell):
                    yield _answer(cell, sizes)


def _answer(cell: Cell, sizes: bool) -> dict[str, Any]:
    with contextlib.suppress(fp.FastprivError):  # loads what all sizes need, once
        cell.ask(_FIRST)
    answer = {**cell._asdict(), "kind": apart(kind, cell)}
    if sizes:
        size = apart(largest, cell, 30.0)
        answer["size"] = size if isinstance(size, int) else None
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--only", default="", help="part of measure/channel/prior")
    parser.add_argument("--save", type=Path, help="a JSON file, kept for what is not asked now")
    given = parser.parse_args()
    answers = []
    for answer in told(given.sizes, given.only):
        answers.append(answer)
        size = f"{answer['size']:,} rows" if answer.get("size") else ""
        names = (answer["channel"] or "the prior alone", answer["measure"], answer["prior"])
        print("".join(f"{name:30}" for name in names) + f"{answer['kind']:12}{size}", flush=True)
    if given.save:
        given.save.write_text(_joined(given.save, answers))


def _joined(path: Path, answers: list[dict[str, Any]]) -> str:
    """Return the JSON of a file with new answers in the place of old ones, one on each line."""
    old = json.loads(path.read_text()) if path.exists() else []
    known = {tuple(each[name] for name in Cell._fields): each for each in old}
    for each in answers:
        key = tuple(each[name] for name in Cell._fields)
        known[key] = {**known.get(key, {}), **each}
    return "[\n" + ",\n".join(json.dumps(each) for each in known.values()) + "\n]\n"


if __name__ == "__main__":
    main()
