"""Names of local mechanisms for commands: ``subset:k=20,epsilon=1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastpriv.channels import AbstractChannel
    from fastpriv.cli.specs import Makers


def subset(k: int, epsilon: float, size: int = 0) -> AbstractChannel:
    """Subset selection: the report is a set of size (0: the best) of k values."""
    from fastpriv.channels import SubsetChannel

    return SubsetChannel(k, epsilon, size or None)


def unary(k: int, epsilon: float) -> AbstractChannel:
    """Optimised unary encoding: the report is k bits, the true one 1 with chance 1/2."""
    from fastpriv.channels import UnaryChannel

    return UnaryChannel(k, epsilon)


def symmetric_unary(k: int, epsilon: float) -> AbstractChannel:
    """Symmetric unary encoding, as in RAPPOR: all of k bits are flipped with one chance."""
    from fastpriv.channels import UnaryChannel

    return UnaryChannel(k, epsilon, "symmetric")


def hashing(k: int, epsilon: float, g: int = 0) -> AbstractChannel:
    """Local hashing: a random hash function to g (a prime; 0: the best) values, noisy."""
    from fastpriv.channels import HashingChannel

    return HashingChannel(k, epsilon, g or None)


def hadamard(k: int, epsilon: float, blocks: int = 0) -> AbstractChannel:
    """Hadamard response on blocks (a power of two; 0: the best) of the k values."""
    from fastpriv.channels import HadamardChannel

    return HadamardChannel(k, epsilon, blocks or None)


def projective(k: int, epsilon: float, q: int = 0) -> AbstractChannel:
    """Projective geometry response over the field of q (a prime; 0: the best) elements."""
    from fastpriv.channels import ProjectiveChannel

    return ProjectiveChannel(k, epsilon, q or None)


MAKERS: Makers = {
    "subset": subset,
    "unary": unary,
    "symmetric-unary": symmetric_unary,
    "hashing": hashing,
    "hadamard": hadamard,
    "projective": projective,
}
