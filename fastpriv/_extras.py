"""Optional packages: imported where they are used, named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any


def optional(module: str, extra: str) -> Any:
    """Import a module, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"this needs {module.split('.')[0]}, which is not installed; "
            f"install it with: pip install 'fastpriv[{extra}]'"
        ) from None
