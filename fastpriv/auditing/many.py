"""``audit_many``: the cheap levels of many mechanisms, as a table."""

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
from fastpriv.measures.inputs import is_stack
from fastpriv.measures.levels import LEVELS
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
#: Entries of the matrices that are measured together: they stay in the cache.
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

    def level(self, slug: str) -> Any:
        """Return the level of one notion."""
        alone = NOTIONS[slug].scope == "mechanism"
        return LEVELS[slug](self.channel) if alone else LEVELS[slug](self.channel, self.prior)

    def alone(self) -> Iterator[_Task]:
        """Yield the matrices of a stack one by one."""
        for k, place in enumerate(self.places):
            own = isinstance(self.prior, np.ndarray) and self.prior.ndim == 2
            yield _Task(place[None], self.channel[k], self.prior[k] if own else self.prior)


def audit_many(
    channels: ArrayLike | Sequence[AbstractChannel | ArrayLike],
    priors: PriorLike | Sequence[PriorLike] | None = None,
    executor: Executor | Any = None,
    progress: bool = False,
) -> Any:
    """Measure many mechanisms: one row for each mechanism, one column for each notion.

    The columns are the notions that cost one or two passes over a matrix: "dp", "strong-dp" and
    "maximal-leakage". A prior adds "identifiability", "mutual-information", "pml",
    "information-privacy", "leakage-factor" and "worst-leakage-factor". :func:`audit` has the other
    notions, for one mechanism.

    Parameters
    ----------
    channels : array of shape (B, N, K), or sequence of channels and 2-D arrays
        The mechanisms. Matrices of one shape are measured together. A 2-D array is a mechanism
        on one record; row x is the output distribution for value x.
    priors : Distribution, 1-D array, array of shape (B, N), or sequence, optional
        One distribution of the database for all mechanisms, or one for each of them.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to run: a process pool, Dask's ``client.get_executor()``, or the client itself. By
        default here, on threads.
    progress : bool
        Show a progress bar on a terminal, if tqdm is installed.

    Returns
    -------
    pandas.DataFrame or dict
        Columns by the notion's slug, one row for each mechanism in the given order. Without pandas
        a dict of arrays. Levels are rounded up; a bracket is replaced by its upper bound. Cost
        O(B N K) for matrices; structured channels cost as much as their measures.

    Raises
    ------
    InvalidInput
        If a mechanism or a prior is invalid. The message names its place.

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
        levels = [guaranteed(NOTIONS[slug], task.level(slug)) for slug in slugs]
    except FastprivError as problem:
        if is_stack(task.channel):
            for one in task.alone():  # the first invalid one raises with its own place
                _measured(one, slugs)
        raise type(problem)(f"channels[{task.places[0]}]: {problem}") from None
    if is_stack(task.channel):
        return task.places, levels
    return task.places, [float(level) for level in levels]  # of a bracket, the guaranteed bound


def _tasks(channels: Any, priors: Any) -> tuple[int, list[_Task]]:
    """Return the number of channels, and the channels in groups."""
    if isinstance(channels, np.ndarray | memoryview):
        stack = check.array(channels, "channels")
        if stack.ndim != 3 or stack.size == 0:
            raise InvalidInput(
                "channels must be a non-empty array of shape (B, N, K) or a sequence of channels; "
                f"got shape {stack.shape}."
            )
        laws = _vector(priors, 0) if isinstance(priors, Distribution) else _numbers(priors)
        if priors is None or laws is not None:
            _check_shapes(laws, stack.shape)
            return len(stack), list(_stack_tasks(np.arange(len(stack)), stack, laws))
        channels = list(stack)
    elif isinstance(channels, AbstractChannel) or not isinstance(channels, Iterable):
        raise InvalidInput(
            f"channels must be a sequence of channels; got {described(channels)}. For one "
            "mechanism call audit."
        )
    listed = list(channels)
    if not listed:
        raise InvalidInput("channels must not be empty.")
    return len(listed), list(_grouped(listed, _each(priors, len(listed))))


def _numbers(priors: Any) -> Floats | None:
    """Return priors that are plain numbers as an array, None for others and no priors."""
    objects = isinstance(priors, list | tuple) and any(isinstance(p, Distribution) for p in priors)
    return None if priors is None or objects else check.array(priors, "priors")


def _check_shapes(laws: Floats | None, shape: tuple[int, ...]) -> None:
    """Refuse priors that do not fit a stack of channels."""
    if laws is not None and laws.shape not in ((shape[1],), shape[:2]):
        raise InvalidInput(
            f"priors must have shape ({shape[1]},) or {shape[:2]}, for {shape[0]} channels with "
            f"{shape[1]} inputs; got {laws.shape}."
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
        raise InvalidInput(f"priors must be one, or one for each of {count}; got {len(listed)}.")
    raise InvalidInput(f"priors must be distributions; got {described(priors)}.")


def _is_number(prior: Any) -> bool:
    """Whether it is the probability of a value rather than a distribution."""
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
                f"priors[{place}] must have {matrix.shape[0]} entries, as channels[{place}] has "
                f"inputs; got shape {law.shape}."
            )
        groups.setdefault(matrix.shape, []).append((place, matrix, law))
    for group in groups.values():
        places, matrices, laws = zip(*group, strict=True)
        stack = np.stack(matrices).astype(np.float64, copy=False)
        own = None if laws[0] is None else np.stack(laws).astype(np.float64, copy=False)
        yield from _stack_tasks(np.array(places), stack, own)


def _matrix(channel: Any, place: int) -> Floats | None:
    """Return the matrix of a channel on one record, None if the channel has a structure."""
    if isinstance(channel, Channel) and channel.space.n == 1:
        return channel.table()
    if isinstance(channel, AbstractChannel):
        return None
    if isinstance(channel, Distribution) or hasattr(channel, "channel"):
        kind = type(channel).__name__
        raise InvalidInput(f"channels[{place}] must be a channel or a matrix; got a {kind}.")
    matrix = check.array(channel, f"channels[{place}]")
    if matrix.ndim != 2 or matrix.size == 0:
        raise InvalidInput(
            f"channels[{place}] must be a channel or a matrix; got shape {matrix.shape}."
        )
    return matrix


def _vector(prior: Any, place: int) -> Floats | None:
    """Return the vector of a prior on one record, None for other priors and no prior."""
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
