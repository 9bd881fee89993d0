"""What the package reports about its own work: a logger, and hooks for metrics.

Events are spends, repeated spends, refusals, conflicts, runs of solvers and compilations. Their
fields are counts, levels, sizes and seconds, never values of data, labels or metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fastpriv.errors import InvalidInput, described

__all__ = ["observe"]

#: The logger of the package. Applications decide what becomes of its records.
LOGGER = logging.getLogger("fastpriv")
LOGGER.addHandler(logging.NullHandler())

Hook = Callable[[str, Mapping[str, Any]], object]
_HOOKS: list[Hook] = []


def observe(hook: Hook) -> Callable[[], None]:
    """Call a function for every event of the package, such as to count them for metrics.

    Parameters
    ----------
    hook : callable
        Called with the name of the event and its fields, in the thread of the event. Events are
        "spend", "repeated" (a spend whose key was known), "refused", "conflict", "solver" and
        "compilation". An exception of the hook is logged and does not stop the work.

    Returns
    -------
    callable
        Stops the calls.

    Notes
    -----
    The same events are records of the logger ``fastpriv``, with the attributes ``event`` and
    ``fields``: refusals as warnings, conflicts for debugging, others as information.

    Examples
    --------
    >>> import fastpriv as fp
    >>> seen = []
    >>> stop = fp.observe(lambda event, fields: seen.append((event, fields["count"])))
    >>> receipt = fp.accounting.Ledger({"dp": 1.0}).spend({"dp": 0.25}, count=3)
    >>> stop()
    >>> seen
    [('spend', 3)]
    """
    if not callable(hook):
        raise InvalidInput(
            f"hook must be a function of an event and its fields; got {described(hook)}."
        )
    from fastpriv.kernels import loader  # only when needed

    _HOOKS.append(hook)
    if _notify not in loader.observers:
        loader.observers.append(_notify)

    def stop() -> None:
        if hook in _HOOKS:
            _HOOKS.remove(hook)

    return stop


def _notify(event: str, fields: Mapping[str, Any]) -> None:
    for hook in tuple(_HOOKS):
        try:
            hook(event, fields)
        except Exception:
            LOGGER.exception("a hook failed at the event %s", event)


def emit(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event and pass it to all hooks."""
    _notify(event, fields)
    if LOGGER.isEnabledFor(level):
        shown = " ".join(f"{name}={value}" for name, value in fields.items())
        LOGGER.log(level, "%s %s", event, shown, extra={"event": event, "fields": fields})
