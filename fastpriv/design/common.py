"""What programs in floats and exact programs share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, lowered
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv._structure.types import Blocks
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    PosteriorChannel,
    ProductChannel,
)
from fastpriv.design.neighbours import hamming_distances
from fastpriv.design.task import Kind
from fastpriv.measures.distortion import expected_cost, expected_distance, hamming_distance
from fastpriv.measures.identifiability import posterior_level
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.priors.unmixing import rounding
from fastpriv.results import Solution

#: Most entries of a matrix whose expected cost is summed exactly.
_SUMMED = 1 << 16
#: Least product that is surely the sum of two doubles.
_SPLIT = 1e-250
#: How often E_i is lowered to meet a level.
_TRIES = 4


def rounding_margin(epsilon: float, n: int) -> float:
    """What rounding can add to the log of a ratio of matrix entries with n row factors."""
    return (16 + 8 * min(n, 64) + 4 * epsilon) * ULP


def constant_mechanism(prior: Distribution) -> Solution:
    """Best mechanism at level 0: always answer with the likeliest value of every row."""
    answers: list[RowKernel] = []
    value, assignment = [], np.empty(prior.space.n, dtype=np.int64)
    for rows in prior.alike_records():
        mean = prior.marginal_sum(rows) / len(rows)
        kernel = np.zeros((len(mean), len(mean)))
        kernel[:, int(mean.argmax())] = 1.0
        assignment[rows] = len(answers)
        answers.append(RowKernel(kernel))
        value.append(len(rows) * float(np.delete(mean, mean.argmax()).sum()))
    channel = ProductChannel.of(RowKernels(answers, assignment))
    bound = lowered(math.fsum(value), 128.0)
    return Solution(expected_distance(channel, prior), bound, channel, 0.0, "closed-form")


def randomised_response(sizes: tuple[int, ...], epsilon: float) -> Solution:
    """E_d, its level lowered by a margin so that the rounded numbers still meet epsilon."""
    safe = max(0.0, epsilon - rounding_margin(epsilon, len(sizes)))
    channel = HammingChannel(len(sizes), sizes, safe)
    value = hamming_distance(RowKernels.symmetric(sizes, safe))
    return Solution(value, least_distance(sizes, epsilon), channel, epsilon, "closed-form")


def posterior_response(prior: Distribution, epsilon: float, tilde: float) -> Solution:
    """E_i at a level from eps_tilde = ``tilde`` on, lowered until its rounded output law meets it.

    Close to eps_tilde there is nowhere to retreat to. The level then says what rounding may add.
    """
    n, sizes = prior.space.n, prior.space.sizes
    aim = epsilon - rounding_margin(epsilon, n) - 2.0 * rounding(min(n, 64))
    for k in range(_TRIES):
        channel = PosteriorChannel.up_to_rounding(prior, max(aim, 0.0))
        over = channel.drawn_level - epsilon
        lower = aim - 2.0 * 4.0**k * over  # at another level rounding may cost more
        if over <= 0.0 or not lower >= tilde:
            break
        aim = lower
    level, value = max(channel.drawn_level, epsilon), expected_distance(channel, prior)
    return Solution(value, least_distance(sizes, epsilon), channel, level, "closed-form")


def joint_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the identifiability of the floats of a channel, rounded up.

    Of independent rows row by row: products p W of the joint law have fewer rounding errors than
    sums of logarithms, which cancel where the channel makes up for the prior.
    """
    if not isinstance(prior, Product) or not isinstance(channel, ProductChannel):
        return posterior_level(channel, prior)
    laws, rows, *_ = prior.paired(channel.kernels)
    return max(
        posterior_level(Channel(channel.kernels.distinct[j].matrix), Dense(prior.distinct[k]))
        for k, j in zip(laws, rows, strict=True)
    )


def least_distance(sizes: tuple[int, ...], epsilon: float) -> float:
    """Return h(epsilon) rounded down, also where its digits underflow."""
    distance = hamming_distance(RowKernels.symmetric(sizes, epsilon))
    return max(lowered(distance, 8.0) - 4.0 * len(sizes) * LEAST, 0.0)


def rounded_up(solution: Kind, prior: Distribution, cost: Floats | None = None) -> Kind:
    """Return the solution with a value no less than the distortion of the floats of its matrix.

    The expected cost sum p(x) W[x, y] d(x, y) is summed exactly and rounded up. Larger channels
    keep the value that they were measured with.
    """
    return replace(solution, value=distortion_up(solution.channel, prior, cost, solution.value))


def distortion_up(
    channel: AbstractChannel, prior: Distribution, cost: Floats | None, least: float
) -> float:
    """Return the expected cost of a channel rounded up, and at least ``least``."""
    if channel.space.size * channel.output_count > _SUMMED:
        return least
    if cost is None:
        usual = expected_distance(channel, prior)
        cost = hamming_distances(prior.space)
    else:
        usual = expected_cost(channel, prior, cost)
    exact = exact_cost(prior.probabilities(), np.array(channel.matrix()), cost)
    return max(least, exact, usual)


def exact_cost(weights: Floats, matrix: Floats, cost: Floats) -> float:
    """Return sum p(x) W[x, y] d(x, y) rounded up: every product is split into two doubles."""
    shares, lost = _split_product(weights[:, None], matrix)
    parts = [*_split_product(shares, cost), *_split_product(lost, cost)]
    terms = np.concatenate([part.reshape(-1) for part in parts])
    if not np.isfinite(terms).all():
        return -math.inf  # too large to be split, so that the usual sum has to do
    rare = np.minimum(shares, np.abs(parts[0])) < _SPLIT  # parts of these may have underflowed
    rare &= (weights[:, None] > 0.0) & (matrix > 0.0) & (cost != 0.0)
    slack = 4.0 * LEAST * np.count_nonzero(rare) * max(1.0, float(np.abs(cost).max()))
    total = math.fsum(terms)
    return math.nextafter(total, math.inf) if math.fsum([*terms, -total, slack]) > 0.0 else total


def _split_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded product of two doubles and what rounding took (Dekker 1971)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = a * b
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, np.broadcast_to(rest, product.shape)


def _halves(a: Floats) -> tuple[Floats, Floats]:
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def symmetries(cube: np.ndarray) -> Blocks:
    """Group the axes that may be swapped without changing an array. Cost O(n^2 N)."""
    sizes = cube.shape
    blocks: list[list[int]] = []
    for i, m in enumerate(sizes):
        for block in blocks:
            if sizes[block[0]] == m and np.array_equal(cube.swapaxes(block[0], i), cube):
                block.append(i)
                break
        else:
            blocks.append([i])
    return Blocks(tuple(map(tuple, blocks)), tuple(sizes[block[0]] for block in blocks))
