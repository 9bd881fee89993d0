"""Local mechanisms: messages that support some of the values of one record."""

from fastpriv.channels.local.hadamard import HadamardChannel
from fastpriv.channels.local.hashing import HashingChannel
from fastpriv.channels.local.projective import ProjectiveChannel
from fastpriv.channels.local.subset import SubsetChannel
from fastpriv.channels.local.support import SupportChannel
from fastpriv.channels.local.unary import UnaryChannel

__all__ = [
    "HadamardChannel",
    "HashingChannel",
    "ProjectiveChannel",
    "SubsetChannel",
    "SupportChannel",
    "UnaryChannel",
]
