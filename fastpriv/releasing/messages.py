"""How the message of a local mechanism is written in a table: a text without commas or quotes.

    subset selection      the codes of its values, "3 17 29"
    unary encoding        a b and the bits, "b0100110"
    local hashing         seed and hash value, "5231:2"
    other mechanisms      the number of the message, "17"

A code is the place of a value in the declared domain, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._sampling.thresholds import Codes
from fastpriv.channels.local import HashingChannel, SubsetChannel, SupportChannel, UnaryChannel
from fastpriv.errors import InvalidInput, described


def texts_of(channel: SupportChannel, messages: Codes) -> list[str]:
    """Write messages as texts."""
    if isinstance(channel, UnaryChannel):
        text, width = (messages.astype(np.uint8) + ord("0")).tobytes().decode(), channel.k
        return ["b" + text[start : start + width] for start in range(0, len(text), width)]
    if isinstance(channel, SubsetChannel):
        return [" ".join(map(str, message)) for message in messages.tolist()]
    if isinstance(channel, HashingChannel):
        return [f"{seed}:{value}" for seed, value in messages.tolist()]
    return list(map(str, messages.tolist()))


def messages_of(channel: SupportChannel, texts: Sequence[Any], column: object) -> Codes:
    """Read messages back from the texts of a column, or raise at the first that is none."""
    given = [str(text).strip() for text in texts]
    try:
        return channel.checked_reports(_parsed(channel, given))
    except (ValueError, OverflowError) as problem:
        wrong = next((k for k, text in enumerate(given) if not _is_message(channel, text)), 0)
        raise InvalidInput(
            f"column {described(column)} must hold messages of {channel!r}; the text in record "
            f"{wrong + 1} of those read is none. Estimate from the table that was released."
        ) from problem


def _is_message(channel: SupportChannel, text: str) -> bool:
    try:
        channel.checked_reports(_parsed(channel, [text]))
    except (ValueError, OverflowError):
        return False
    return True


def _parsed(channel: SupportChannel, texts: list[str]) -> NDArray[Any]:
    """Return the integers of texts, or raise a ValueError."""
    if isinstance(channel, UnaryChannel):
        if any(len(text) != channel.k + 1 or text[0] != "b" for text in texts):
            raise ValueError("other bits")
        joined = "".join(text[1:] for text in texts).encode("ascii")
        return np.frombuffer(joined, np.uint8).reshape(len(texts), channel.k) - np.uint8(ord("0"))
    if isinstance(channel, SubsetChannel):
        sets = [[int(word) for word in text.split()] for text in texts]
        return np.array(sets, dtype=np.int64).reshape(len(texts), channel.size)
    if isinstance(channel, HashingChannel):
        pairs = [[int(word) for word in text.split(":")] for text in texts]
        return np.array(pairs, dtype=np.int64).reshape(len(texts), 2)
    return np.array([int(text) for text in texts], dtype=np.int64)
