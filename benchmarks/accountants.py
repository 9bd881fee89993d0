"""How the accountants of others, and ours, are asked for epsilon at a delta.

A question is a line of Python in the accountant's own words: that line is what is evaluated, and
what a reader types to see the answer again. The lines of ``imports`` come before it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from events import (
    Allocation,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Response,
    Sampled,
    Times,
    Together,
    leaves,
)


class NotTaken(Exception):
    """The accountant has no word for a release."""


@dataclass(frozen=True)
class Accountant:
    """A name, the distribution it is in, what it imports, and how it is asked."""

    name: str
    needs: str
    imports: str
    line: Callable[[object, float], str]

    def call(self, tree, delta):
        """A function without arguments that answers."""
        code, names = compile(self.line(tree, delta), self.name, "eval"), namespace(self.imports)
        return lambda: eval(code, names)


@lru_cache
def namespace(imports):
    """What the lines of imports define."""
    names = {}
    exec(imports, names)
    return names


def told(words, leaf):
    """A leaf in the words of an accountant."""
    if type(leaf) not in words:
        raise NotTaken(f"no {type(leaf).__name__}")
    return words[type(leaf)](leaf)


def sampled(words):
    """Words for noise on samples, from those of a few kinds of noise."""

    def say(event):
        if type(event.leaf) not in words:
            raise NotTaken(f"no sampled {type(event.leaf).__name__}")
        return words[type(event.leaf)](event.leaf, event.rate)

    return say


def listed(tree, words):
    """Texts of the leaves, and their counts."""
    counted = leaves(tree)
    return f"[{', '.join(told(words, leaf) for leaf in counted)}]", list(counted.values())


# Ours.

OURS = {
    Gaussian: lambda e: f"PrivacyProfile.gaussian({e.sigma})",
    Laplace: lambda e: f"PrivacyProfile.laplace({e.scale})",
    DiscreteGaussian: lambda e: f"PrivacyProfile.discrete_gaussian({e.sigma})",
    DiscreteLaplace: lambda e: f"PrivacyProfile.discrete_laplace({e.a})",
    Response: lambda e: f"PrivacyProfile.randomised_response({e.m}, {e.epsilon})",
    Exponential: lambda e: f"PrivacyProfile.exponential({e.epsilon})",
    Allocation: lambda e: f"random_allocation({e.sigma}, {e.batches}, {e.epochs})",
    Sampled: sampled(
        {
            Gaussian: lambda e, q: f"PrivacyProfile.gaussian({e.sigma}, {q})",
            Laplace: lambda e, q: f"PrivacyProfile.laplace({e.scale}, {q})",
        }
    ),
}


def our_profile(tree):
    """The tree as profiles, composed as it is."""
    if isinstance(tree, Times):
        return f"{our_profile(tree.tree)}.self_compose({tree.count})"
    if isinstance(tree, Together):
        first, *rest = map(our_profile, tree.trees)
        return f"{first}.compose({', '.join(rest)})"
    return told(OURS, tree)


# dp-accounting.


def noise_parameter(response):
    """Chance of a uniform answer."""
    return response.m / (math.exp(response.epsilon) + response.m - 1.0)


GOOGLE = {
    Gaussian: lambda e: f"GaussianDpEvent({e.sigma})",
    Laplace: lambda e: f"LaplaceDpEvent({e.scale})",
    DiscreteLaplace: lambda e: f"DiscreteLaplaceDpEvent({e.a}, 1)",
    Response: lambda e: f"RandomizedResponseDpEvent({noise_parameter(e)}, {e.m})",
    Sampled: lambda e: f"PoissonSampledDpEvent({e.rate}, {told(GOOGLE, e.leaf)})",
}


def dp_event(tree):
    """The tree as events."""
    if isinstance(tree, Times):
        return f"SelfComposedDpEvent({dp_event(tree.tree)}, {tree.count})"
    if isinstance(tree, Together):
        return f"ComposedDpEvent([{', '.join(map(dp_event, tree.trees))}])"
    return told(GOOGLE, tree)


def relation(tree):
    """What is given to an accountant of events whose neighbours replace a value."""
    replaces = any(isinstance(leaf, Response) for leaf in leaves(tree))
    return "neighboring_relation=NeighboringRelation.REPLACE_ONE" if replaces else ""


def with_events(accountant):
    """Lines for one of the accountants of dp-accounting."""

    def line(tree, delta):
        made = f"{accountant}({relation(tree)})"
        return f"{made}.compose({dp_event(tree)}).get_epsilon({delta})"

    return line


# prv-accountant.

PRV = {
    Gaussian: lambda e: f"GaussianMechanism({e.sigma})",
    Laplace: lambda e: f"LaplaceMechanism({1.0 / e.scale})",
    Sampled: sampled(
        {Gaussian: lambda e, q: f"PoissonSubsampledGaussianMechanism({q}, {e.sigma})"},
    ),
}


def pure(response):
    """Binary response, the worst mechanism of its level; other numbers of values leak less."""
    if response.m != 2:
        raise NotTaken(f"no Response over {response.m} values")
    return f"PureDPMechanism({response.epsilon})"


def with_prv(tree, delta):
    """Its upper bound, for an error of 0.01 in epsilon and of a thousandth in delta."""
    texts, counts = listed(tree, PRV | {Response: pure, DiscreteLaplace: binary_prv})
    asked = f"PRVAccountant({texts}, 0.01, {delta / 1000}, {counts})"
    return f"{asked}.compute_epsilon({delta}, {counts})[2]"


def binary_prv(event):
    """Discrete Laplace noise on an integer that moves by one has the losses a and -a."""
    return f"PureDPMechanism({event.a})"


# autodp.

AUTODP = {
    Gaussian: lambda e: f"GaussianMechanism({e.sigma})",
    Laplace: lambda e: f"LaplaceMechanism({e.scale})",
    DiscreteGaussian: lambda e: f"DiscreteGaussianMechanism({e.sigma})",
    Exponential: lambda e: f"ExponentialMechanism({e.epsilon})",
    Sampled: sampled({Gaussian: lambda e, q: f"NoisySGD_Mechanism({q}, {e.sigma}, 1)"}),
}


def truthful(response):
    """Binary response by the chance of the truth."""
    if response.m != 2:
        raise NotTaken(f"no Response over {response.m} values")
    return f"RandresponseMechanism({1.0 / (1.0 + math.exp(-response.epsilon))})"


def with_autodp(tree, delta):
    """Renyi differential privacy, converted; a single mechanism by its own formula if it has."""
    texts, counts = listed(tree, AUTODP | {Response: truthful})
    return f"Composition()({texts}, {counts}).get_approxDP({delta})"


# OpenDP.

#: Most measurements that are put together one by one.
OPENDP_MOST = 2000


def opendp_noise(name, kind, scale):
    """A measurement that adds noise to a number."""
    given = ", nan=False" if kind == "float" else ""
    space = f"dp.atom_domain(T={kind}{given}), dp.absolute_distance(T={kind})"
    return f"dp.m.make_{name}({space}, {scale})"


OPENDP = {
    Gaussian: lambda e: opendp_noise("gaussian", "float", e.sigma),
    DiscreteGaussian: lambda e: opendp_noise("gaussian", "int", e.sigma),
    Laplace: lambda e: f"pure({opendp_noise('laplace', 'float', e.scale)})",
    DiscreteLaplace: lambda e: f"pure({opendp_noise('laplace', 'int', 1.0 / e.a)})",
}


def with_opendp(tree, delta):
    """zCDP, converted."""
    counted = leaves(tree)
    if counted.total() > OPENDP_MOST:
        raise NotTaken(f"more than {OPENDP_MOST:,} measurements")
    parts = " + ".join(f"[{told(OPENDP, leaf)}] * {count}" for leaf, count in counted.items())
    if len({isinstance(leaf, Gaussian | Laplace) for leaf in counted}) > 1:
        raise NotTaken("integers and reals in one composition")
    approximate = f"dp.c.make_zCDP_to_approxDP(dp.c.make_composition({parts}))"
    return f"dp.c.make_fix_delta({approximate}, {delta}).map(1)[0]"


# Opacus and riskcal: a history of (noise multiplier, sampling rate, steps).


def history(tree):
    """The steps of training, if nothing else is composed."""
    steps = []
    for leaf, count in leaves(tree).items():
        noise, rate = (leaf.leaf, leaf.rate) if isinstance(leaf, Sampled) else (leaf, 1.0)
        if not isinstance(noise, Gaussian):
            raise NotTaken(f"no {type(noise).__name__}")
        steps.append((noise.sigma, rate, count))
    return steps


def with_history(kinds=math.inf):
    """Lines for an accountant of histories, of at most so many kinds of steps."""

    def line(tree, delta):
        steps = history(tree)
        if len(steps) > kinds:
            raise NotTaken(f"more than {kinds} kind of steps")
        return f"epsilon({steps}, {delta})"

    return line


def of_histories(module, accountant):
    """Imports of such an accountant: it keeps its history as an attribute."""
    return (
        f"from {module} import {accountant}\n"
        "def epsilon(history, delta):\n"
        f"    accountant = {accountant}()\n"
        "    accountant.history = history\n"
        f"    return accountant.get_epsilon(delta=delta)"
    )


# PLD_accounting.


def with_allocation(tree, delta):
    """Its upper bound for random allocation, which is its subject."""
    if not isinstance(tree, Allocation):
        raise NotTaken(f"no {type(tree).__name__}")
    given = f"sigma={tree.sigma}, num_steps={tree.batches}, num_epochs={tree.epochs}"
    return f"gaussian_allocation_epsilon_range(delta={delta}, {given})[0]"


EVENTS = "from dp_accounting import NeighboringRelation\nfrom dp_accounting.dp_event import *\n"
FASTPRIV = Accountant(
    "fastpriv",
    "fastpriv",
    "from fastpriv.accounting import PrivacyProfile, random_allocation",
    lambda tree, delta: f"{our_profile(tree)}.epsilon({delta})",
)
PEERS = (
    Accountant(
        "dp-accounting PLD",
        "dp-accounting",
        EVENTS + "from dp_accounting.pld import PLDAccountant",
        with_events("PLDAccountant"),
    ),
    Accountant(
        "dp-accounting RDP",
        "dp-accounting",
        EVENTS + "from dp_accounting.rdp import RdpAccountant",
        with_events("RdpAccountant"),
    ),
    Accountant(
        "prv-accountant",
        "prv-accountant",
        "from prv_accountant import PRVAccountant\n"
        "from prv_accountant.privacy_random_variables import *",
        with_prv,
    ),
    Accountant(
        "autodp",
        "autodp",
        "from autodp.mechanism_zoo import *\nfrom autodp.transformer_zoo import Composition",
        with_autodp,
    ),
    Accountant(
        "OpenDP",
        "opendp",
        "import opendp.prelude as dp\n"
        "from opendp.combinators import make_pureDP_to_zCDP as pure\n"
        'dp.enable_features("contrib")',
        with_opendp,
    ),
    Accountant(
        "Opacus RDP",
        "opacus",
        of_histories("opacus.accountants", "RDPAccountant"),
        with_history(),
    ),
    Accountant(
        "Opacus GDP",
        "opacus",
        of_histories("opacus.accountants", "GaussianAccountant"),
        with_history(kinds=1),
    ),
    Accountant(
        "Opacus PRV",
        "opacus",
        of_histories("opacus.accountants", "PRVAccountant"),
        with_history(),
    ),
    Accountant(
        "riskcal",
        "riskcal",
        of_histories("riskcal.accountants.ctd", "CTDAccountant"),
        with_history(),
    ),
    Accountant(
        "PLD_accounting",
        "PLD_accounting",
        "from PLD_accounting import gaussian_allocation_epsilon_range",
        with_allocation,
    ),
)
