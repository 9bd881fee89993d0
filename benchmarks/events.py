"""Releases that accountants are asked about: leaves, compositions, and how they are drawn.

The text of a tree, such as ``Times(tree=Gaussian(sigma=1.0), count=10)``, is Python that makes it
again. Neighbours differ by one person who is added or removed; where a leaf is a response, by one
person's value.
"""

import math
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise; its standard deviation over what one person contributes."""

    sigma: float


@dataclass(frozen=True)
class Laplace:
    """Laplace noise; its scale over what one person contributes."""

    scale: float


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise e^(-x^2/(2 sigma^2)) / Z on an integer that one person moves by one."""

    sigma: float


@dataclass(frozen=True)
class DiscreteLaplace:
    """Noise e^(-a|x|) tanh(a/2) on an integer that one person moves by one."""

    a: float


@dataclass(frozen=True)
class Response:
    """Randomised response over m values at a level."""

    m: int
    epsilon: float


@dataclass(frozen=True)
class Exponential:
    """Any mechanism of bounded range, such as the exponential mechanism."""

    epsilon: float


@dataclass(frozen=True)
class Sampled:
    """Noise on a Poisson sample of the people."""

    leaf: Gaussian | Laplace
    rate: float


@dataclass(frozen=True)
class Allocation:
    """Gaussian noise on batches; every person is in one random batch of each epoch."""

    sigma: float
    batches: int
    epochs: int


@dataclass(frozen=True)
class Times:
    """A tree, repeated."""

    tree: object
    count: int


@dataclass(frozen=True)
class Together:
    """Several trees."""

    trees: tuple


def leaves(tree, times=1):
    """How often every leaf of a tree is released."""
    if isinstance(tree, Times):
        return leaves(tree.tree, times * tree.count)
    if isinstance(tree, Together):
        return sum((leaves(each, times) for each in tree.trees), Counter())
    return Counter({tree: times})


def rounded(value, digits=3):
    """A number that is short to write."""
    return float(f"{value:.{digits}g}")


def between(rng, low, high):
    """A number between two others, by its logarithm."""
    return rounded(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw_delta(rng):
    """Mostly what people ask for, sometimes far less."""
    return float(f"1e-{rng.choice([*range(3, 13)] * 2 + [15, 20, 30, 60, 100, 300])}")


def draw_noise(rng):
    """Noise on everybody, as much as a number of releases needs."""
    count = int(between(rng, 1, 1e5))
    mu = between(rng, 0.1, 2.0)
    leaf = rng.choice(
        [
            Gaussian(rounded(math.sqrt(count) / mu)),
            Laplace(rounded(math.sqrt(2 * count) / mu)),
            DiscreteGaussian(rounded(math.sqrt(count) / mu)),
            DiscreteLaplace(rounded(mu / math.sqrt(2 * count))),
        ]
    )
    return Times(leaf, count)


def draw_sampled(rng):
    """Noise on samples, as in training."""
    sigma, rate = between(rng, 0.5, 5.0), between(rng, 1e-4, 0.5)
    most = max(1.0, min(1e5, (3.0 * sigma / rate) ** 2))
    leaf = Laplace(sigma) if rng.random() < 0.2 else Gaussian(sigma)
    return Times(Sampled(leaf, rate), int(between(rng, 1, most)))


def draw_responses(rng):
    """Randomised response over a few values."""
    count = int(between(rng, 1, 300))
    epsilon = rounded(between(rng, 0.1, 3.0) / math.sqrt(count))
    return Times(Response(rng.choice([2, 2, 3, 10]), epsilon), count)


def draw_integers(rng):
    """A few releases of integers, whose outcomes can be listed."""
    scale, count = between(rng, 0.5, 3.0), rng.randint(1, 5)
    return Times(rng.choice([DiscreteGaussian(scale), DiscreteLaplace(rounded(1 / scale))]), count)


def draw_single(rng):
    """A single release of noise, which by itself has a closed form."""
    leaf = Gaussian(between(rng, 0.5, 5.0))
    return leaf if rng.random() < 0.3 else Sampled(leaf, between(rng, 0.001, 0.9))


def draw_allocation(rng):
    """Training with shuffled batches."""
    batches, epochs = rng.choice([10, 100, 1000]), rng.choice([1, 1, 10])
    return Allocation(between(rng, 0.6, 3.0), batches, epochs)


FAMILIES = {
    "noise": draw_noise,
    "sampled": draw_sampled,
    "responses": draw_responses,
    "integers": draw_integers,
    "single": draw_single,
    "allocation": draw_allocation,
}


def draw(rng, families=tuple(FAMILIES)):
    """A family, a tree of it and a delta: one to three compositions, some of them repeated."""
    family = rng.choice(families)
    of = FAMILIES[family]
    trees = tuple(of(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    tree = trees[0] if len(trees) == 1 else Together(trees)
    if len(trees) > 1 and rng.random() < 0.3:
        tree = Times(tree, 2)
    return family, tree, draw_delta(rng)
