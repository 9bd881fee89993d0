"""Channels: mechanisms p(y|x), each answering the primitives in its own structure."""

from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.channels.dense import Channel
from fastpriv.channels.hamming import HammingChannel
from fastpriv.channels.local import (
    HadamardChannel,
    HashingChannel,
    ProjectiveChannel,
    SubsetChannel,
    SupportChannel,
    UnaryChannel,
)
from fastpriv.channels.posterior import PosteriorChannel
from fastpriv.channels.product import ProductChannel
from fastpriv.channels.query import QueryChannel
from fastpriv.channels.record import RecordChannel
from fastpriv.channels.tilted import TiltedChannel
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
