"""What the theorems say of the best privacy level at a distortion, without solving anything."""

from __future__ import annotations

import math

from fastpriv.channels import HammingChannel
from fastpriv.design.closed_form import h_inverse
from fastpriv.errors import TooLarge
from fastpriv.measures.individual import individual_capacity
from fastpriv.priors import Distribution
from fastpriv.priors.unmixing import tilde_bound
from fastpriv.results import Bracket

_WIDEN = 1e-13


def tilde_or_bound(prior: Distribution) -> float:
    """Return eps_tilde, or the upper end of its bracket, or the closed bound on it."""
    try:
        return float(prior.epsilon_tilde())
    except TooLarge:
        return tilde_bound(prior.space.sizes, prior.epsilon_x())


def theorem_bracket(prior: Distribution, distortion: float, notion: str) -> Bracket:
    """Bracket the best level at a distortion below that of a constant output.

    With e = h^-1(distortion): max(e - eps_X, 0) to max(e, 0) for differential privacy, and
    max(e, eps_X) to max(e, 0) + eps_X for identifiability (Wang-Ying-Zhang 2015, Theorem 1 and
    Main Result 1); e itself from eps_tilde on. Mutual information is at least H(X) - H(row noise)
    by Fano's inequality for every row, and E_d reaches at most ln N - H(row noise).

    Pointwise maximal leakage is at least the information. It is at most n e with E_d, and -ln p_min
    with any mechanism. The individual capacity is at least 1/n of the information, by the chain
    rule: what is told about a row given others is told under another prior. E_d has the rest.

    Parameters
    ----------
    prior : Distribution
        Law of the databases.
    distortion : float
        Expected number of changed rows.
    notion : str
        A notion with a program.
    """
    if notion in ("pml", "individual-capacity"):
        return _beside_information(prior, distortion, notion)
    sizes = [m for m in prior.space.sizes if m > 1]
    spread = prior.epsilon_x()
    plain = float(h_inverse(distortion, len(sizes), sizes))
    low, high = plain * (1.0 - _WIDEN), plain * (1.0 + _WIDEN)
    tilde = tilde_or_bound(prior)
    exact = plain >= tilde
    if notion == "dp":
        return Bracket(low if exact else max(low - spread, 0.0), max(high, 0.0))
    if notion == "identifiability":
        # E_i at eps_tilde has a smaller distortion where this one is beyond h(eps_tilde).
        beyond = min(max(high, 0.0) + spread, tilde * (1.0 + _WIDEN))
        return Bracket(max(low, prior.epsilon_x_lower()), high if exact else max(beyond, spread))
    noise = math.fsum(_noise(max(plain, 0.0), m) for m in sizes)
    entropy = float(prior.entropy())
    error = 1e-12 * (entropy + noise)
    least = max(entropy - noise - error, 0.0)
    most = entropy if exact else min(entropy + noise, math.fsum(map(math.log, sizes)))
    return Bracket(least, max(min(most - noise, entropy), 0.0) + error)


def _beside_information(prior: Distribution, distortion: float, notion: str) -> Bracket:
    """Bracket a leakage by the information that it bounds, and by what E_d leaks."""
    sizes, n = [m for m in prior.space.sizes if m > 1], prior.space.n
    told = theorem_bracket(prior, distortion, "mutual-information")
    level = max(float(h_inverse(distortion, len(sizes), sizes)), 0.0) * (1.0 + _WIDEN)
    if notion == "pml":
        most = min(n * level, -prior.log_smallest()) * (1.0 + _WIDEN)
        return Bracket(min(told.lower, most), most)
    least = told.lower / n * (1.0 - _WIDEN)
    most = math.log(max(sizes)) * (1.0 + _WIDEN)
    if level < math.inf:
        channel = HammingChannel(n, prior.space.sizes, level)
        most = min(most, individual_capacity(channel, time_limit=None).upper)
    return Bracket(min(least, most), most)


def _noise(level: float, m: int) -> float:
    """Entropy of a row of the m-ary symmetric channel."""
    if level == math.inf:
        return 0.0
    move = (m - 1) * math.exp(-level)
    return math.log1p(move) + level * move / (1.0 + move)
