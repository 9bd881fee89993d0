"""Channels: mechanisms p(y|x), each measured in its own structure.

``base`` has the protocol. These modules have one structure each: ``dense``, ``product`` (record by
record), ``query`` with ``queries`` (mechanisms that use only the answer of a query), ``types``
(symmetric in the records), ``tilted`` (posterior response and rate-distortion optima) and
``record`` (columns of a record). ``local`` has mechanisms whose messages support some of the
values.
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
