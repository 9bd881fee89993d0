"""Where many tasks run: here, on an executor, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastpriv.errors import InvalidInput, described


def mapping(executor: Any) -> Callable[..., Any]:
    """Return how to run a function over many arguments, results in their order.

    ``executor`` is None (here, one after the other), a ``concurrent.futures.Executor``, or a Dask
    client, whose own ``map`` returns futures.
    """
    if executor is None:
        return map
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor()
    if not (hasattr(executor, "submit") and hasattr(executor, "map")):
        raise InvalidInput(
            "executor must be a concurrent.futures.Executor or a Dask client; got "
            f"{described(executor)}."
        )
    run: Callable[..., Any] = executor.map
    return run
