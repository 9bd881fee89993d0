"""The cheap levels of many mechanisms at once, as a table."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.executors import mapping
from fastpriv._core.extras import optional, progress_bar
from fastpriv._core.validation import Floats, Ints
from fastpriv.auditing.case import guaranteed
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import FastprivError, InvalidInput, described
from fastpriv.measures.stacks import is_stack
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Distribution

__all__ = ["audit_many"]

#: The columns: notions that cost one or two passes over a matrix.
_CHEAP = (
    "dp",
    "strong-dp",
    "maximal-leakage",
    "identifiability",
    "mutual-information",
    "pml",
    "information-privacy",
    "leakage-factor",
    "worst-leakage-factor",
)
#: Entries of the matrices that are measured together.
_TOGETHER = 1 << 20

PriorLike = Distribution | ArrayLike


@dataclass(frozen=True)
class _Task:
    """Channels that are measured together.

    Attributes
    ----------
    places : integer array
        Their numbers in the list that was given.
    channel : array or channel
        A stack of matrices, or a single channel of any kind.
    prior : array, Distribution or None
        One prior, or one for each matrix of the stack.
    """

    places: Ints
    channel: Any
    prior: Any

    def alone(self) -> Iterator[_Task]:
        """Take the matrices of a stack one by one."""
        for k, place in enumerate(self.places):
            own = isinstance(self.prior, np.ndarray) and self.prior.ndim == 2
            yield _Task(place[None], self.channel[k], self.prior[k] if own else self.prior)


def audit_many(
    channels: ArrayLike | Sequence[AbstractChannel | ArrayLike],
    priors: PriorLike | Sequence[PriorLike] | None = None,
    executor: Executor | Any = None,
    progress: bool = False,
) -> Any:
    """Levels of many mechanisms: one row for each mechanism, one column for each notion.

    The columns are the notions that cost one or two passes over a matrix. Three of them need no
    prior: "dp", "strong-dp" and "maximal-leakage". Under a prior there are "identifiability",
    "mutual-information", "pml", "information-privacy", "leakage-factor" and
    "worst-leakage-factor" too. :func:`audit` has the other notions, for one mechanism.

    Parameters
    ----------
    channels : array of shape (B, N, K), or sequence of channels and 2-D arrays
        The mechanisms. Matrices of one shape are measured together, however they are mixed with
        others. A plain matrix is one row with as many values as it has rows.
    priors : Distribution, 1-D array, array of shape (B, N), or sequence, optional
        One law of the database for all mechanisms, or one for each of them.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to run: a process pool, Dask's ``client.get_executor()``, or the client itself. By
        default here, on threads.
    progress : bool
        Show a progress bar on a terminal, if tqdm is installed.

    Returns
    -------
    pandas.DataFrame or dict
        Columns by the notion's slug, one row for each mechanism in the given order. Without pandas
        a dict of arrays. Levels are rounded up, and the upper end is taken of a bracket. Cost
        O(B N K) for matrices; structured channels cost what their measures cost.

    Raises
    ------
    InvalidInput
        If a mechanism or a prior is not one. The message says which.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpriv as fp
    >>> stack = np.array([[[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> table = fp.audit_many(stack, [0.5, 0.5])
    >>> np.round(table["mutual-information"], 6).tolist()
    [0.130812, 0.0]
    >>> mixed = fp.audit_many([fp.HammingChannel(3, 2, 1.0), stack[0]])
    >>> np.round(mixed["strong-dp"], 6).tolist()
    [3.0, 1.098612]
    """
    count, tasks = _tasks(channels, priors)
    slugs = [slug for slug in _CHEAP if priors is not None or NOTIONS[slug].scope == "mechanism"]
    columns = {slug: np.empty(count) for slug in slugs}
    run = mapping(executor)
    with progress_bar(count, "channel", progress) as bar:
        for places, levels in run(_measured, tasks, [slugs] * len(tasks)):
            for slug, column in zip(slugs, levels, strict=True):
                columns[slug][places] = column
            bar.update(len(places))
    if importlib.util.find_spec("pandas") is None:
        return columns
    return optional("pandas", "tables").DataFrame(columns)


def _measured(task: _Task, slugs: list[str]) -> tuple[Ints, list[Any]]:
    """Return the places of some channels and their levels, notion by notion."""
    try:
        notions = [NOTIONS[slug] for slug in slugs]
        levels = [guaranteed(notion, notion.level(task.channel, task.prior)) for notion in notions]
    except FastprivError as problem:
        if is_stack(task.channel):
            for one in task.alone():  # the one that is wrong says which it is
                _measured(one, slugs)
        raise type(problem)(f"channels[{task.places[0]}]: {problem}") from None
    if is_stack(task.channel):
        return task.places, levels
    return task.places, [float(level) for level in levels]  # of a bracket, the guaranteed end


def _tasks(channels: Any, priors: Any) -> tuple[int, list[_Task]]:
    """Return the number of channels, and the channels in groups."""
    if isinstance(channels, np.ndarray | memoryview):
        stack = check.array(channels, "channels")
        if stack.ndim != 3 or stack.size == 0:
            raise InvalidInput(
                "channels must be an array of shape (B, N, K) with no empty side or a sequence of "
                f"channels, got shape {stack.shape}"
            )
        laws = _vector(priors, 0) if isinstance(priors, Distribution) else _numbers(priors)
        if priors is None or laws is not None:
            _check_shapes(laws, stack.shape)
            return len(stack), list(_stack_tasks(np.arange(len(stack)), stack, laws))
        channels = list(stack)
    elif isinstance(channels, AbstractChannel) or not isinstance(channels, Iterable):
        raise InvalidInput(
            f"channels must be a sequence of channels, got {described(channels)}; for one "
            "mechanism use audit"
        )
    listed = list(channels)
    if not listed:
        raise InvalidInput("channels must not be empty")
    return len(listed), list(_grouped(listed, _each(priors, len(listed))))


def _numbers(priors: Any) -> Floats | None:
    """Return priors that are plain numbers as an array, None for others and no priors."""
    objects = isinstance(priors, list | tuple) and any(isinstance(p, Distribution) for p in priors)
    return None if priors is None or objects else check.array(priors, "priors")


def _check_shapes(laws: Floats | None, shape: tuple[int, ...]) -> None:
    """Refuse priors that do not fit a stack of channels."""
    if laws is not None and laws.shape not in ((shape[1],), shape[:2]):
        raise InvalidInput(
            f"the priors of {shape[0]} channels with {shape[1]} inputs must have shape "
            f"({shape[1]},) or {shape[:2]}, got {laws.shape}"
        )


def _each(priors: Any, count: int) -> list[Any]:
    """Return one prior for each channel; a single one serves all."""
    if priors is None or isinstance(priors, Distribution):
        return [priors] * count
    if isinstance(priors, memoryview):
        priors = np.asarray(priors)
    if isinstance(priors, Iterable):
        listed = np.atleast_1d(priors) if isinstance(priors, np.ndarray) else list(priors)
        if len(listed) > 0 and _is_number(listed[0]):
            return [check.law(listed, "priors")] * count
        if len(listed) == count:
            return list(listed)
        raise InvalidInput(f"priors must be one, or one for each of {count}; got {len(listed)}")
    raise InvalidInput(f"priors must be laws, got {described(priors)}")


def _is_number(prior: Any) -> bool:
    """Whether it is the probability of a value rather than a law."""
    return not isinstance(prior, Distribution) and check.array(prior, "priors").ndim == 0


def _grouped(channels: list[Any], priors: list[Any]) -> Iterator[_Task]:
    """Yield stacks of matrices of one shape, and other channels one by one."""
    groups: dict[tuple[int, ...], list[tuple[int, Floats, Any]]] = {}
    for place, (channel, prior) in enumerate(zip(channels, priors, strict=True)):
        matrix, law = _matrix(channel, place), _vector(prior, place)
        if matrix is None or (law is None and prior is not None):
            yield _Task(np.array([place]), channel, prior)
            continue
        if law is not None and law.shape != matrix.shape[:1]:
            raise InvalidInput(
                f"channels[{place}] has {matrix.shape[0]} inputs, but its prior has shape "
                f"{law.shape}"
            )
        groups.setdefault(matrix.shape, []).append((place, matrix, law))
    for group in groups.values():
        places, matrices, laws = zip(*group, strict=True)
        stack = np.stack(matrices).astype(np.float64, copy=False)
        own = None if laws[0] is None else np.stack(laws).astype(np.float64, copy=False)
        yield from _stack_tasks(np.array(places), stack, own)


def _matrix(channel: Any, place: int) -> Floats | None:
    """Return the matrix of a channel of one row, None if the channel has a structure."""
    if isinstance(channel, Channel) and channel.space.n == 1:
        return channel.array
    if isinstance(channel, AbstractChannel):
        return None
    if isinstance(channel, Distribution) or hasattr(channel, "channel"):
        kind = type(channel).__name__
        raise InvalidInput(f"channels[{place}] must be a channel or a matrix, got a {kind}")
    matrix = check.array(channel, f"channels[{place}]")
    if matrix.ndim != 2 or matrix.size == 0:
        raise InvalidInput(
            f"channels[{place}] must be a channel or a matrix, got shape {matrix.shape}"
        )
    return matrix


def _vector(prior: Any, place: int) -> Floats | None:
    """Return the vector of a prior on one row, None for other priors and no prior."""
    if isinstance(prior, Distribution):
        plain = prior.space.n == 1 and prior.logs_if_rare() is None
        return prior.probabilities() if plain else None
    return None if prior is None else check.array(prior, f"priors[{place}]")


def _stack_tasks(places: Ints, stack: Any, priors: Any) -> Iterator[_Task]:
    """Cut a stack into pieces of a few megabytes."""
    step = max(1, _TOGETHER // stack[0].size)
    own = isinstance(priors, np.ndarray) and priors.ndim == 2
    for start in range(0, len(stack), step):
        part = slice(start, start + step)
        yield _Task(places[part], stack[part], priors[part] if own else priors)
