"""Memoised answers for repeated collection: drawn once and repeated."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import product_up
from fastpriv._matrices.ratios import joint_laws
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import InvalidInput
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.realised import drawn_level

__all__ = ["Memoised"]


class Memoised:
    """A permanent answer for every value of a user, and fresh noise on it in every round.

    The first time a user holds a value, an answer is drawn through the permanent mechanism and
    kept. Each round sends that answer, through the instantaneous mechanism if there is one. These
    are the two steps of RAPPOR (Erlingsson, Pihur and Korolova 2014). The messages Y_1, ..., Y_t of
    a value x are a post-processing of its permanent answer Z. For any t they reveal no more about x
    than Z does, in any notion that post-processing cannot raise. Answers for several values are
    independent draws, and their levels add up.

    The levels protect which values a user held, not when they changed: neighbouring histories
    change value in the same rounds. A changed permanent answer reveals that the value changed.

    Parameters
    ----------
    permanent : channel
        From the value, one record, to the answer that is kept.
    instantaneous : channel, optional
        From the answer to a message; its databases are the outputs of the permanent mechanism.

    Examples
    --------
    >>> import fastpriv as fp
    >>> twice = fp.mechanisms.Memoised(fp.HammingChannel(1, 4, 2.0), fp.HammingChannel(1, 4, 1.0))
    >>> [round(twice.level(rounds), 4) for rounds in (1, 2, 5)], twice.level()
    ([0.6454, 1.2334, 1.9414], 2.0)
    >>> kept = {}
    >>> first = twice.report(["ann", "bob"], [3, 0], kept, rng=1)
    >>> sorted(kept)
    [('ann', 3), ('bob', 0)]
    """

    def __init__(
        self, permanent: AbstractChannel, instantaneous: AbstractChannel | None = None
    ) -> None:
        if not isinstance(permanent, AbstractChannel) or permanent.space.n != 1:
            raise InvalidInput(
                "permanent must be a channel on one record, which holds the value of a user."
            )
        if instantaneous is not None and (
            not isinstance(instantaneous, AbstractChannel)
            or instantaneous.space != permanent.output_space
        ):
            raise InvalidInput(
                f"instantaneous must be a channel on the outputs of {permanent!r}, "
                f"{permanent.output_space!r}."
            )
        self.permanent, self.instantaneous = permanent, instantaneous

    def channel(self, rounds: int = 1) -> AbstractChannel:
        """Return the channel to all messages of some rounds in which a user holds one value.

        Parameters
        ----------
        rounds : int
            Number of rounds t. Through an instantaneous mechanism of L outputs the matrix has L^t
            columns; without one the messages are copies of one answer.
        """
        count = check.integer(rounds, "rounds", 1)
        if self.instantaneous is None:
            return self.permanent
        fresh = laws = np.array(self.instantaneous.matrix())
        for _ in range(count - 1):
            laws = joint_laws(laws, fresh)
        whole = np.array(self.permanent.matrix()) @ laws
        return Channel(whole / whole.sum(axis=1, keepdims=True))

    def level(self, rounds: int | None = None, values: int = 1) -> float:
        """Return the differential privacy level of all messages of a user.

        Parameters
        ----------
        rounds : int, optional
            Number of rounds, for the level of the matrix :meth:`channel`. Default: any number, the
            level of the permanent answers as they are drawn.
        values : int
            Number of different values that a user holds over all rounds.

        Returns
        -------
        float
            Level in nats, rounded up; the sum over values.
        """
        ever = drawn_level(self.permanent)
        if rounds is not None and self.instantaneous is not None:
            ever = min(ever, neighbour_level(self.channel(rounds)))
        return product_up(check.integer(values, "values", 1), ever)

    def report(
        self,
        users: Sequence[Hashable],
        values: ArrayLike,
        kept: MutableMapping[tuple[Hashable, int], Any],
        rng: np.random.Generator | int | None = None,
    ) -> NDArray[Any]:
        """Return the messages of one round.

        Parameters
        ----------
        users : sequence
            The users who send a message.
        values : 1-D integer array
            The value of each.
        kept : mutable mapping
            Permanent answers by (user, value), which this fills in. It is as secret as the values,
            belongs to the users and must outlive all rounds.
        rng : numpy.random.Generator or int, optional
            Makes the draws repeatable and NOT secure. A seed used in two rounds repeats noise.
        """
        codes = check.codes(np.asarray(values)[:, None], self.permanent.space.sizes, None)[:, 0]
        if len(codes) != len(users):
            raise InvalidInput(
                f"values must be one for each of {len(users)} users; got {len(codes)}."
            )
        generator = None if rng is None else check.generator(rng)
        pairs = list(zip(users, codes.tolist(), strict=True))
        new = list(dict.fromkeys(pair for pair in pairs if pair not in kept))
        if new:
            held = np.array([value for _, value in new])[:, None]
            kept.update(zip(new, self.permanent.sample(held, generator), strict=True))
        answers = np.array([kept[pair] for pair in pairs])
        if self.instantaneous is None:
            return answers
        rows = answers.reshape(len(answers), -1)
        return np.asarray(self.instantaneous.sample(rows, generator))

    def __repr__(self) -> str:
        fresh = "" if self.instantaneous is None else f", {self.instantaneous!r}"
        return f"Memoised({self.permanent!r}{fresh})"
