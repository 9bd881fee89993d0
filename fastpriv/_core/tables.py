"""Tables that a lower layer reads and a higher layer fills.

The package connects functions that import a table when it is read, so that no layer looks up a
higher one by name and importing the package stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SOURCES: dict[str, Callable[[], Any]] = {}


def connect(**sources: Callable[[], Any]) -> None:
    """Register for each name the function that imports and returns its table."""
    _SOURCES.update(sources)


def table(name: str) -> Any:
    """Return a table, imported when it is first read."""
    return _SOURCES[name]()
