"""Public names of a folder, loaded when they are first used, with a hint at near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader


def attach(
    module: str, file: str, hint: Callable[[str], str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a folder with a stub file.

    Parameters
    ----------
    module, file : str
        Name and file of the module.
    hint : callable, optional
        Maps an unknown name to a hint. Default: the nearest name of the module.
    """
    find, names, public = lazy_loader.attach_stub(module, file)

    def load(name: str) -> Any:
        """Load a public name; an unknown one is answered with what is near it."""
        try:
            return find(name)
        except AttributeError:
            if name.startswith("_"):
                raise
        from fastpriv.errors import did_you_mean

        near = hint(name) if hint else did_you_mean(name, public)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{near}")

    return load, names, public
