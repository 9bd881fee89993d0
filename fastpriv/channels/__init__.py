"""Channels: mechanisms p(y|x), each answering the primitives in its own structure.

``base`` has the protocol. ``dense``, ``product`` (record by record), ``query`` with ``queries``
(what a query sees), ``types`` (symmetric in the records), ``tilted`` (E_i and rate-distortion
optima) and ``record`` (columns of a record) have one structure each; ``local`` has mechanisms whose
messages support some of the values.
"""

from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.dense import Channel
from fastpriv.channels.local import (
    HadamardChannel,
    HashingChannel,
    ProjectiveChannel,
    SubsetChannel,
    SupportChannel,
    UnaryChannel,
)
from fastpriv.channels.product import HammingChannel, ProductChannel
from fastpriv.channels.query import QueryChannel
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.channels.tilted import PosteriorChannel, TiltedChannel
from fastpriv.channels.types import TypeChannel

__all__ = [
    "AbstractChannel",
    "Channel",
    "ColumnsChannel",
    "HadamardChannel",
    "HammingChannel",
    "HashingChannel",
    "PosteriorChannel",
    "ProductChannel",
    "ProjectiveChannel",
    "QueryChannel",
    "RecordChannel",
    "SubsetChannel",
    "SupportChannel",
    "TiltedChannel",
    "TypeChannel",
    "UnaryChannel",
]
