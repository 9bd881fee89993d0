"""How a report is written in a table: a short text without commas or quotes.

    subset selection      the codes of its values, "3 17 29"
    unary encoding        a b and the bits, "b0100110"
    local hashing         seed and hash value, "5231:2"
    other mechanisms      the number of the report, "17"

A code is the place of a value in the declared domain, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._sampling.thresholds import Codes
from fastpriv.channels.local import HashingChannel, SubsetChannel, SupportChannel, UnaryChannel
from fastpriv.errors import InvalidInput, described


@singledispatch
def spelt(channel: SupportChannel, reports: Codes) -> list[str]:
    """Write reports as texts."""
    return list(map(str, reports.tolist()))


@spelt.register
def _subset_spelt(channel: SubsetChannel, reports: Codes) -> list[str]:
    return [" ".join(map(str, report)) for report in reports.tolist()]


@spelt.register
def _unary_spelt(channel: UnaryChannel, reports: Codes) -> list[str]:
    text = (reports.astype(np.uint8) + ord("0")).tobytes().decode()
    width = channel.k
    return ["b" + text[start : start + width] for start in range(0, len(text), width)]


@spelt.register
def _hashing_spelt(channel: HashingChannel, reports: Codes) -> list[str]:
    return [f"{seed}:{value}" for seed, value in reports.tolist()]


def read(channel: SupportChannel, texts: Sequence[Any], name: object) -> Codes:
    """Read reports back from their texts, or say which one is none."""
    given = [str(text).strip() for text in texts]
    try:
        return channel.checked_reports(_read(channel, given))
    except (ValueError, OverflowError) as problem:
        wrong = next((row for row, text in enumerate(given) if not _is_one(channel, text)), 0)
        raise InvalidInput(
            f"column {described(name)} holds a text that is no report of {channel!r} (in record "
            f"{wrong + 1} of those read); estimate from the table that was released"
        ) from problem


def _is_one(channel: SupportChannel, text: str) -> bool:
    try:
        channel.checked_reports(_read(channel, [text]))
    except (ValueError, OverflowError):
        return False
    return True


@singledispatch
def _read(channel: SupportChannel, texts: list[str]) -> NDArray[Any]:
    return np.array([int(text) for text in texts], dtype=np.int64)


@_read.register
def _subset_read(channel: SubsetChannel, texts: list[str]) -> NDArray[Any]:
    sets = [[int(word) for word in text.split()] for text in texts]
    return np.array(sets, dtype=np.int64).reshape(len(texts), channel.size)


@_read.register
def _unary_read(channel: UnaryChannel, texts: list[str]) -> NDArray[Any]:
    if any(len(text) != channel.k + 1 or text[0] != "b" for text in texts):
        raise ValueError("other bits")
    joined = "".join(text[1:] for text in texts).encode("ascii")
    return np.frombuffer(joined, np.uint8).reshape(len(texts), channel.k) - np.uint8(ord("0"))


@_read.register
def _hashing_read(channel: HashingChannel, texts: list[str]) -> NDArray[Any]:
    pairs = [[int(word) for word in text.split(":")] for text in texts]
    return np.array(pairs, dtype=np.int64).reshape(len(texts), 2)
