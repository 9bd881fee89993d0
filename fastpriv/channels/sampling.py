"""The protocol of sampling: databases in, outputs out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._sampling.source import Source
from fastpriv._sampling.source import source as random_source
from fastpriv._sampling.thresholds import Codes
from fastpriv.errors import InvalidInput
from fastpriv.spaces import Space


class Sampler(ABC):
    """Something that draws an output for every database of a space.

    ``fastpriv.measures.realised`` bounds the level of the draws. A class with a sampler of its
    own registers its bound there.
    """

    #: The space of the databases.
    space: Space

    @abstractmethod
    def draw(self, rows: Codes, source: Source) -> Codes:
        """Return outputs for databases of shape (k, n)."""

    def sample(self, rows: ArrayLike, rng: np.random.Generator | int | None = None) -> Codes:
        """Draw an output for each database; :func:`realised_level` is the level of the draws.

        Parameters
        ----------
        rows : integer array of shape (k, n)
            The databases.
        rng : numpy.random.Generator or int, optional
            A generator or a seed for work that is to be repeated. By default the draws are
            cryptographically secure, as those of a release should be: whoever can predict the
            generator can undo the noise.

        Returns
        -------
        ndarray
            (k, n) rows where outputs are databases, in the dtype of the given ones wherever it
            fits; (k,) output indices otherwise.
        """
        given = check.codes(rows, self.space.sizes, self.space.m)
        if given.ndim != 2:
            raise InvalidInput(
                f"rows must have shape (k, n), got {given.shape}; one row: rows[None]"
            )
        return self.draw(given, random_source(rng))
