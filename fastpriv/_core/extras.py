"""Optional packages: imported where they are used, named when they are missing."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import AbstractContextManager
from typing import Any


def optional(module: str, extra: str) -> Any:
    """Import a module, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"this needs {module.split('.')[0]}, which is not installed; "
            f"install it with: pip install 'fastpriv[{extra}]', in a clone '.[{extra}]'"
        ) from None


def progress_bar(total: int | None, unit: str, wanted: bool) -> AbstractContextManager[Any]:
    """Return tqdm's bar on standard error: silent unless wanted, on a terminal, and installed."""
    if wanted and sys.stderr.isatty() and importlib.util.find_spec("tqdm"):
        bar: AbstractContextManager[Any] = optional("tqdm", "progress").tqdm(
            total=total, unit=unit, unit_scale=True, leave=False
        )
        return bar
    return _NoBar()


class _NoBar(AbstractContextManager["_NoBar"]):
    n = 0

    def update(self, count: int) -> None:
        self.n += count

    def __exit__(self, *problem: object) -> None:
        return None
