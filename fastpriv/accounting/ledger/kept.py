"""A composed law as bytes, in a ledger's file: whoever opens it next need not compose again.

Nothing depends on these bytes. They begin with their own digest and say which releases they were
made of. Where they are damaged, of another version or platform, or of releases that are not in the
ledger, they count for nothing and the law is composed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from fastpriv.accounting.profile.discrete import FINE
from fastpriv.accounting.profile.running import Running

_VERSION = 1
_DIGEST = 32
#: Arrays of doubles, and those with more digits, which are written as two doubles each.
_PLAIN, _FINE = ("turns", "logs", "amounts"), ("chernoff", "log_total")


def written(parts: Mapping[str, int], law: Running) -> bytes:
    """Return the law of some releases, and which they are."""
    arrays = {name: np.asarray(getattr(law, name), np.float64) for name in _PLAIN}
    for name in _FINE:
        value = np.asarray(getattr(law, name), np.longdouble)
        first = value.astype(np.float64)
        arrays[name] = np.stack([first, (value - first).astype(np.float64)])
    about = {
        "version": _VERSION,
        "fine": FINE,
        "parts": {_name(text): count for text, count in parts.items()},
        "s": law.s.hex(),
        "h": law.h.hex(),
        "places": law.places.tolist(),
        "shapes": {name: array.shape for name, array in arrays.items()},
    }
    head = json.dumps(about).encode() + b"\n"
    body = head + b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    return hashlib.sha256(body).digest() + body


def read(data: bytes, parts: Mapping[str, int]) -> tuple[dict[str, int], Running] | None:
    """Return the law and its releases; None unless all of them are among those of the ledger."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    head, _, body = data[_DIGEST:].partition(b"\n")
    about = json.loads(head)
    if (about["version"], about["fine"]) != (_VERSION, FINE):
        return None
    texts = {_name(text): text for text in parts}
    made = about["parts"]
    if not all(name in texts and parts[texts[name]] >= made[name] for name in made):
        return None
    arrays, start = {}, 0
    for name, shape in about["shapes"].items():
        size = int(np.prod(shape))
        arrays[name] = np.frombuffer(body, "<f8", size, 8 * start).astype(np.float64)
        arrays[name] = arrays[name].reshape(shape)
        start += size
    fine = {name: arrays[name].astype(np.longdouble).sum(axis=0) for name in _FINE}
    law = Running(
        float.fromhex(about["s"]),
        float.fromhex(about["h"]),
        arrays["turns"],
        arrays["logs"],
        fine["chernoff"],
        np.array(about["places"], np.int64),
        np.longdouble(fine["log_total"]),
        arrays["amounts"],
    )
    return {texts[name]: count for name, count in made.items()}, law


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
