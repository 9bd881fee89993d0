"""Two people with one secret: individual capacity has no parallel composition."""

from __future__ import annotations

from typing import NamedTuple

from fastpriv._core import validation as check
from fastpriv.channels import Channel, ProductChannel
from fastpriv.measures.capacity import channel_capacity
from fastpriv.measures.individual import individual_capacity
from fastpriv.results import Bracket

__all__ = ["ParallelExample", "parallel_example"]


class ParallelExample(NamedTuple):
    """Two people who release one noisy bit each, and the individual capacities.

    Examples
    --------
    >>> import fastpriv as fp
    >>> example = fp.parallel_example(0.1)
    >>> example.together.lower > example.alone.upper
    True
    """

    channel: ProductChannel
    alone: Bracket
    together: Bracket


def parallel_example(p: float) -> ParallelExample:
    """Show that individual capacity has no parallel composition: two people with one secret.

    Each of two people releases a bit that is flipped with probability p. The differential privacy
    level of the pair is that of one release. An adversary who knows that both bits are equal sees
    one bit twice. For 0 < p < 1/2 this adversary learns strictly more, because the second release
    is not a function of the first (Wu-Xia-He 2020, Proposition 7, which leaves strictness open).

    Parameters
    ----------
    p : float
        Probability that a bit is flipped, 0 to 1.

    Returns
    -------
    ParallelExample
        ``channel`` of both people, the individual capacity of one release ``alone`` and of both
        ``together``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> example = fp.parallel_example(0.25)
    >>> f"{example.alone:.6f} {example.together:.6f}"
    '[0.130812, 0.130812] [0.230040, 0.230040]'
    >>> noise = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(fp.dp_level(example.channel), 12), round(fp.dp_level(noise), 12)
    (1.098612288668, 1.098612288668)
    """
    p = check.real(p, "p", least=0.0, most=1.0)
    noise = [[1.0 - p, p], [p, 1.0 - p]]
    channel = ProductChannel([noise, noise])
    return ParallelExample(channel, channel_capacity(Channel(noise)), individual_capacity(channel))
