"""How PD-DP and PD-I are solved: row by row, on types, or over all databases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fastpriv._core.rounding import exp_down, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks, expand, types_of
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    ProductChannel,
)
from fastpriv.channels.types import TypeChannel, type_weights
from fastpriv.design.common import (
    constant_mechanism,
    joint_level,
    least_distance,
    randomised_response,
    rounding_margin,
    symmetries,
)
from fastpriv.design.engine import SOLVERS
from fastpriv.design.interior import OutOfTime
from fastpriv.design.reduced import solve_reduced
from fastpriv.design.task import Task, told
from fastpriv.errors import TooLarge, short
from fastpriv.measures.distortion import expected_distance
from fastpriv.measures.dp import neighbour_level
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.results import Solution

_UNSOLVED = "a chain this long has no program, only the bounds of theorems"
#: Most databases of a program without structure.
_DENSE = 1 << 13


def solve_program(prior: Distribution, task: Task) -> Solution:
    """Solve the program in the prior's structure: rows, types or all databases."""
    try:
        solution = _program(prior, task)
    except OutOfTime:  # what needs no program is what there is
        solution = _certify(
            prior, task, constant_mechanism(prior).channel, 0.0, "closed-form", None
        )
    return told(solution, task, why=_UNSOLVED if has_no_program(prior) else "")


def has_no_program(prior: Distribution) -> bool:
    """Whether only theorems bound the optimum: a Markov chain with too many databases."""
    return isinstance(prior, Markov) and prior.space.size > _DENSE


def _program(prior: Distribution, task: Task) -> Solution:
    if isinstance(prior, Product):
        return _rows(prior, task)
    if isinstance(prior, Exchangeable):
        types = types_of(Blocks.single(prior.space.n, prior.space.sizes[0]))
        solved = solve_reduced(types, type_weights(types, prior), task)
        channel: AbstractChannel = TypeChannel(types, solved.classes, solved.entries)
        return _certify(prior, task, channel, solved.bound, "types", solved.solver)
    if isinstance(prior, Markov) and has_no_program(prior):
        return _without_program(prior, task)
    if prior.space.size > _DENSE:
        raise TooLarge(
            f"the program of {prior!r} is solved over at most {_DENSE:,} databases, and there are "
            f"{short(prior.space.size)}; use fewer rows, a product or exchangeable prior, or an "
            f"epsilon of at least {'epsilon_tilde()' if task.joint else 'epsilon_hat()'} of the "
            "prior, where no program is needed"
        )
    dense = prior.as_dense("the program")
    types = types_of(symmetries(dense.probabilities().reshape(dense.space.sizes)))
    rows = dense.space.rows(np.arange(dense.space.size))
    weights = np.asarray(np.bincount(types.number(rows), dense.probabilities()), dtype=np.float64)
    solved = solve_reduced(types, weights, task)
    channel = Channel(expand(types, solved.classes, solved.entries), dense.space)
    # Products along a chain are rounded.
    bound = solved.bound if prior is dense else lowered(solved.bound, 8.0 * (prior.space.n + 2))
    return _certify(prior, task, channel, bound, "dense", solved.solver)


def _without_program(prior: Markov, task: Task) -> Solution:
    """Long chain: the better of a constant output and E_d, with the bound of Theorem 1.

    E_d at epsilon - eps_X has identifiability epsilon (Wang-Ying-Zhang 2015, Lemma 5).
    """
    safe = task.epsilon - (prior.epsilon_x() if task.joint else 0.0)
    channel = randomised_response(prior.space.sizes, max(safe, 0.0)).channel
    return _certify(prior, task, channel, 0.0, "closed-form", None)


def _rows(prior: Product, task: Task) -> Solution:
    """Independent rows: both programs tensorise, so the optimum is the sum over rows."""
    kernels, bounds, solvers = [], [], list[str]()
    for law in prior.distinct:
        matrix, bound, solver = _one_row(law, task, extra=rounding_margin(0.0, prior.space.n))
        kernels.append(RowKernel(matrix))
        bounds.append(bound)
        solvers += [solver] if solver else []
    channel = ProductChannel.of(RowKernels(kernels, prior.assignment))
    # One row that took the interior-point method is worth telling.
    engine = max(solvers, default=None)
    return _certify(prior, task, channel, prior.total(bounds), "rows", engine)


def _one_row(law: Floats, task: Task, extra: float) -> tuple[Floats, float, str | None]:
    m = len(law)
    if m == 1:
        return np.ones((1, 1)), 0.0, None
    if m == 2 and not task.joint and task.solver == SOLVERS[0]:
        return *_one_bit(law, task.epsilon, extra), None
    types = types_of(Blocks(((0,),), (m,)))
    order = types.number(np.arange(m)[:, None])
    weights = np.empty(m)
    weights[order] = law
    solved = solve_reduced(types, weights, task, extra)
    row = Product.of([law], np.zeros(1, dtype=np.int64))
    best, constant = Channel(expand(types, solved.classes, solved.entries)), constant_mechanism(row)
    chosen = best if expected_distance(best, row) <= constant.value else constant.channel
    return chosen.matrix(), solved.bound, solved.solver


def _one_bit(law: Floats, epsilon: float, extra: float) -> tuple[Floats, float]:
    """Solve PD-DP of one bit in closed form: randomised response or a constant.

    Private mechanisms are a polygon in the plane of both chances of a flip. Besides the two
    constants its only vertex below the line between them is randomised response, with the flip
    1/(1 + e^epsilon).
    """
    rare = float(law.min())
    safe = max(0.0, epsilon - rounding_margin(epsilon, 1) - extra)
    flip, best = (math.exp(-level) / (1.0 + math.exp(-level)) for level in (safe, epsilon))
    if rare <= flip:
        matrix = np.zeros((2, 2))
        matrix[:, int(law.argmax())] = 1.0
    else:
        matrix = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]])
    return matrix, lowered(min(rare, best), 8)


def _certify(
    prior: Distribution,
    task: Task,
    channel: AbstractChannel,
    bound: float,
    method: str,
    solver: str | None,
) -> Solution:
    """Keep the best of what is known to be private: the program's mechanism, a constant, E_d.

    The bound is at least what the relaxation R-PD gives for nothing (Theorem 1). At a small level
    of differential privacy it is nearly that of a constant: two databases differ in at most n
    records, so W[x, y] >= e^(-n epsilon) W[z, y] for one fixed z, and so are the distortions.
    """
    sizes, epsilon = prior.space.sizes, task.epsilon
    bound = max(0.0, bound)  # 0 also where the program proved no number
    relaxed = epsilon if task.joint else epsilon + prior.epsilon_x()
    if relaxed < math.inf:
        bound = max(bound, least_distance(sizes, raised(relaxed, 4.0)))
    level = joint_level(channel, prior) if task.joint else neighbour_level(channel)
    made = Solution(expected_distance(channel, prior), bound, channel, level, method)
    others = [constant_mechanism(prior)]
    if task.joint:  # epsilon is at least eps_X, which two ways of rounding may tell differently
        others = [replace(others[0], level=min(prior.epsilon_x(), epsilon))]
    else:
        others.append(randomised_response(sizes, epsilon))
        far = exp_down(-raised(prior.space.n * epsilon, 4.0))
        bound = max(bound, lowered(far * others[0].bound, 4.0))
    if not level <= epsilon or not math.isfinite(made.value):
        made = others[0]
    best = min([made, *others], key=lambda solution: solution.value)
    return replace(best, bound=min(bound, best.value), method=method, solver=solver)
