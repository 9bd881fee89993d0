"""The whole (epsilon, delta) curve of a mechanism, and of many of them together."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, overload

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import headed, unheaded
from fastpriv._core.rounding import lowered
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.composed import Composed, Part
from fastpriv.accounting.profile.crossing import certified, each
from fastpriv.accounting.profile.declared import Named, gdp, renyi, zcdp
from fastpriv.accounting.profile.distinguishing import Distinguishers
from fastpriv.accounting.profile.finite import Finite
from fastpriv.accounting.profile.fixed import Largest, every_pair
from fastpriv.accounting.profile.fixed_noise import LargestWithNoise
from fastpriv.accounting.profile.questions import Questions
from fastpriv.accounting.profile.relations import (
    ADDED,
    RELATIONS,
    REPLACED,
    as_relation,
    one_relation,
)
from fastpriv.accounting.profile.sampled import Sampled
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described, unread
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.realised import realised
from fastpriv.results import Bracket, Brackets

__all__ = ["PrivacyProfile"]

#: Most releases of a kind.
_COUNTED = 10**100


class PrivacyProfile(Sampled, Questions):
    """The (epsilon, delta) curve of some releases, as a pair of laws that dominates them.

    For one mechanism the curve is the upper envelope, over neighbours x, x' in both orders, of
    their hockey-stick divergences: convex and piecewise linear in e^epsilon, hence that of one
    pair of laws (P, Q), which is at least as easy to tell apart as any two neighbours. Releases
    compose by multiplying their pairs, whatever later mechanisms do with earlier outputs.

    Make one with :meth:`of`, :meth:`realised`, :meth:`randomised_response`,
    :meth:`from_epsilon_delta`, or from noise: ``gaussian``, ``laplace`` and the others.

    Attributes
    ----------
    relation : {"add-or-remove", "replace-one", "replace-special"}
        Which databases are neighbours. Noise and declared levels: "add-or-remove" unless given.
        Channels: "replace-one". Profiles of different relations do not compose; the guide on
        relations explains what each covers.

    Notes
    -----
    The upper end of a bracket is a guarantee: for the releases that the profiles were made of, and
    for any others with these curves, each of which may depend on what came before. The lower end
    is attained: two neighbouring databases, in one order and the same in every release, are at
    least as easy to tell apart from the outputs of the given channels. Channels on different
    spaces read data of the same people, one pair of neighbours each; :meth:`randomised_response`
    and :meth:`from_epsilon_delta` are the worst mechanisms of their levels, whatever the pair.

    After one release both ends are the same but for rounding. They stay the same where one pair of
    neighbours, in either order, sets the whole curve, as in E_d and in counts with symmetric
    noise. Otherwise no pair reaches the composed envelope, and the bracket shows by how much. The
    lower end is that of the best of a few pairs, which Renyi divergences pick: all of them where
    they are few. For channels of different kinds on one space they are found through the kernels
    of their rows or through small matrices; failing that, it is the best for the releases of one
    kind.

    Rows of a matrix are divided by their exact sums. The bracket of one release also holds the
    delta of the entries as they are, that of ``hockey_stick``: see docs/theory/rounding.md.

    Losses are listed, on their lattice where there is one, for randomised response and E_d in any
    number, mixtures of a few such epsilons, and other channels while sums are few; beyond that a
    grid bounds the curve from both sides. A law is tilted towards the question asked, so that
    relative accuracy does not depend on how small delta is.

    Examples
    --------
    >>> import fastpriv as fp
    >>> lopsided = fp.accounting.PrivacyProfile.of([[0.9, 0.1], [0.4, 0.6]])
    >>> lopsided.delta(0.5), lopsided.self_compose(2).delta(0.5)
    (Bracket(0.4351278729, 0.435127873), Bracket(0.5462045966, 0.6045895111))
    >>> profile = fp.accounting.PrivacyProfile.of(fp.HammingChannel(1_000_000, 4, 0.5))
    >>> thousand = profile.self_compose(1000)
    >>> thousand.epsilon(1e-14)
    Bracket(157.6829167, 157.6829168)
    >>> thousand.delta(124.0)
    Bracket(1.136353683e-6, 1.136353684e-6)
    """

    # Each of these names makes a profile on the class, and asks one on an instance.
    zcdp = Named(zcdp, Questions.zcdp_level)
    renyi = Named(renyi, Questions.renyi_level)
    gdp = Named(gdp, Questions.gdp_level)

    def __init__(self, parts: dict[Part, int], relation: str = ADDED) -> None:
        self._parts = {
            part: count for part, count in parts.items() if count and not part.is_trivial
        }
        self.relation = as_relation(relation)
        if max(self._parts.values(), default=0) > _COUNTED:
            raise InvalidInput("a profile is of at most 10^100 releases of a kind; compose fewer")

    @classmethod
    def of(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release by a mechanism.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Closed form for E_d; the pairs of one row's laws for channels that act
            row by row; O(N n (m-1) K log K) through the matrix otherwise.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
        >>> profile.epsilon(0.2), profile.delta(0.0)
        (Bracket(infinite, infinite), Bracket(0.2499999999, 0.2500000001))
        """
        return cls({Atom.of(as_channel(channel), 0.0): 1}, REPLACED)

    @classmethod
    def realised(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release as ``channel.sample`` draws it: of its integer thresholds.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Where its draws are known up to a relative error only, laws of
            neighbours are moved apart by it. Cost as for :meth:`of`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> laws = [[1.0, 1e-25], [1.0, 1e-22]]  # both chances are drawn as 2^-64
        >>> fp.accounting.PrivacyProfile.realised(laws).epsilon(0.0).upper < 1e-13
        True
        """
        given = as_channel(channel)
        drawn, slack = realised(given)
        atom, rows = Atom.of(drawn, slack), given.kernels
        if atom.is_response and rows is not None:
            m = atom.key[1]  # of the rows that are the worst
            levels = [kernel.thresholds.level() for kernel in rows.distinct if kernel.shape[0] == m]
            atom = atom.down_to(lowered(min(levels, default=0.0), 4.0))
        return cls({atom: 1}, REPLACED)

    @classmethod
    def randomised_response(cls, m: int, epsilon: float) -> PrivacyProfile:
        """Profile of m-ary randomised response at level epsilon, the same as E_d of any length.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.randomised_response(4, 0.5).self_compose(100).epsilon(1e-6)
        Bracket(23.46746703, 23.46746704)
        """
        size = check.integer(m, "m", 1)
        level = check.real(epsilon, "epsilon", least=0.0)
        return cls({Atom.response(size, level): 1}, REPLACED)

    @classmethod
    def from_epsilon_delta(
        cls, epsilon: float, delta: float = 0.0, *, relation: str = ADDED
    ) -> PrivacyProfile:
        """Worst profile of any (epsilon, delta)-DP mechanism.

        With probability delta the database is shown, else binary randomised response.

        Parameters
        ----------
        epsilon, delta : float
            The level, in nats, and the delta of the mechanism.
        relation : {"add-or-remove", "replace-one", "replace-special"}
            The neighbours for which the mechanism has this level.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.from_epsilon_delta(1.0, 1e-6).delta(1.0)
        Bracket(1e-6, 1e-6)
        """
        level = check.real(epsilon, "epsilon", least=0.0)
        shown = check.real(delta, "delta", least=0.0, most=1.0)
        return cls({Atom.response(2, level, shown): 1}, relation)

    # Composition.

    def compose(self, *others: PrivacyProfile) -> PrivacyProfile:
        """Profile of these releases and others together, all for one relation of neighbours.

        A profile of no release composes with any.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.randomised_response
        >>> of(2, 0.5).compose(of(4, 0.1), of(4, 0.1))
        PrivacyProfile(3 releases of 2 kinds, relation='replace-one')
        """
        parts: dict[Part, int] = {}
        relation: str | None = None
        for each_profile in (self, *others):
            if not isinstance(each_profile, PrivacyProfile):
                raise InvalidInput(f"only profiles compose, got {described(each_profile)}")
            if each_profile._parts:
                relation = one_relation(relation, each_profile.relation)
            for part, count in each_profile._parts.items():
                parts[part] = parts.get(part, 0) + count
        return PrivacyProfile(parts, relation or self.relation)

    def self_compose(self, count: int) -> PrivacyProfile:
        """Profile of ``count`` independent runs of these releases, 0 for none."""
        times = check.integer(count, "count", 0)
        return PrivacyProfile({part: k * times for part, k in self._parts.items()}, self.relation)

    def with_relation(self, relation: str) -> PrivacyProfile:
        """Return the same curve, stated for another relation of neighbours. It is not converted.

        For steps whose noise multiplier or sensitivity is already that of the relation: a count
        also moves by one if a record is replaced, and a table of counts in two cells.

        Parameters
        ----------
        relation : {"add-or-remove", "replace-one", "replace-special"}
            The neighbours for which the curve holds.

        Examples
        --------
        >>> import fastpriv as fp
        >>> count = fp.accounting.PrivacyProfile.discrete_laplace(0.5).with_relation("replace-one")
        >>> count.epsilon(0.0), count.relation
        (Bracket(0.5, 0.5), 'replace-one')
        """
        return PrivacyProfile(self._parts, check.word(relation, "relation", RELATIONS))

    def to_dict(self) -> dict[str, Any]:
        """Return what the releases are, for JSON: numbers, and the definitions of channels.

        Of a channel that does not say what defines it only the curve is kept, so that the lower
        end is what one release attains.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).to_dict()
        {'relation': 'add-or-remove', 'releases': [[['normal', 2.0], 3]]}
        """
        from fastpriv.accounting.profile.text import plain

        releases = [[plain(part), count] for part, count in self._parts.items()]
        return {"relation": self.relation, "releases": releases}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyProfile:
        """Return the profile that :meth:`to_dict` was called on.

        A text without its relation is refused, for no curve holds for every relation.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.laplace(2.0, 0.1).self_compose(5)
        >>> fp.accounting.PrivacyProfile.from_dict(profile.to_dict()).epsilon(0.0)
        Bracket(0.3142736173, 0.3142736174)
        """
        from fastpriv.accounting.profile.text import counted

        try:
            fields = check.mapping(given, "a profile")
            releases = check.items(fields["releases"], "releases", "pairs")
            counts = ((part, check.integer(count, "count", 0)) for part, count in releases)
            parts = counted(counts)
            relation = fields["relation"] if parts else fields.get("relation") or ADDED
        except (KeyError, TypeError, ValueError) as error:
            raise unread("profile", given, error) from None
        return cls(parts, check.word(relation, "relation", RELATIONS))

    def to_json(self) -> str:
        """Return what the releases are as JSON; ``from_json`` reads it."""
        return headed("profile", "PrivacyProfile", self.to_dict())

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> PrivacyProfile:
        """Return the profile that ``to_json`` was called on: from its text, or a file's path.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3)
        >>> fp.accounting.PrivacyProfile.from_json(profile.to_json()).to_dict()
        {'relation': 'add-or-remove', 'releases': [[['normal', 2.0], 3]]}
        """
        return cls.from_dict(unheaded(text, "profile", "PrivacyProfile"))

    # Questions.

    @overload
    def delta(self, epsilon: float, adaptive: bool = True) -> Bracket: ...
    @overload
    def delta(self, epsilon: ArrayLike, adaptive: bool = True) -> Bracket | Brackets: ...
    def delta(self, epsilon: float | ArrayLike, adaptive: bool = True) -> Bracket | Brackets:
        """Least delta for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float or 1-D array
            Levels of at least 0, in nats.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed, and
            read one database: the exact maximum over pairs of neighbours, at most 4,096 of them,
            or 256 together with noise.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides (of what, see Notes), with relative accuracy down to 1e-300.
            The upper end holds for every mechanism with these curves, the lower end is attained
            by neighbours.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
        >>> profile.delta([0.0, 0.5])[1]
        Bracket(0.3378196823, 0.3378196824)
        """
        kind = check.flag(adaptive, "adaptive")
        return each(epsilon, "epsilon", math.inf, self._delta if kind else self._fixed_delta)

    @overload
    def epsilon(self, delta: float, adaptive: bool = True) -> Bracket: ...
    @overload
    def epsilon(self, delta: ArrayLike, adaptive: bool = True) -> Bracket | Brackets: ...
    def epsilon(self, delta: float | ArrayLike, adaptive: bool = True) -> Bracket | Brackets:
        """Least epsilon for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float or 1-D array
            In [0, 1]; 0 asks for the differential privacy level.
        adaptive : bool
            Whether mechanisms may be chosen after earlier outputs. If not, they are fixed, and
            read one database: the exact maximum over pairs of neighbours, at most 4,096 of them,
            or 256 together with noise.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides as in :meth:`delta`; infinite when outputs that give a
            database away are more likely than delta.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.randomised_response(2, 1.0).self_compose(10)
        >>> profile.epsilon([0.0, 1e-3])[0]
        Bracket(9.999999999, 10.00000001)
        """
        kind = check.flag(adaptive, "adaptive")
        return each(delta, "delta", 1.0, self._epsilon if kind else self._fixed_epsilon)

    def __eq__(self, other: object) -> bool:
        """Whether the releases are the same, float for float, for the same relation."""
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        return self.relation == other.relation and self._parts == other._parts

    def __hash__(self) -> int:
        return hash((self.relation, frozenset(self._parts.items())))

    def __repr__(self) -> str:
        kinds = len(self._parts)
        releases = f"{sum(self._parts.values()):,} releases of {kinds} kinds"
        return f"PrivacyProfile({releases}, relation={self.relation!r})"

    # How.

    @cached_property
    def _engine(self) -> Finite | Composed:
        """Who knows both ends of the curve."""
        if self._is_finite:
            return Finite(self._atoms)
        return Composed(self._parts)

    @property
    def _is_finite(self) -> bool:
        return all(isinstance(part, Atom) for part in self._parts)

    @property
    def _atoms(self) -> dict[Atom, int]:
        return {part: count for part, count in self._parts.items() if isinstance(part, Atom)}

    def _delta(self, epsilon: float) -> Bracket:
        return self._engine.delta(epsilon)

    def _epsilon(self, delta: float) -> Bracket:
        return self._engine.epsilon(delta)

    def _guaranteed(self, delta: float) -> float:
        """Upper end of epsilon alone."""
        return self._engine.guaranteed(delta)

    def _log_moment(self, s: float) -> tuple[float, float]:
        return Composed(self._parts).log_moment(s)

    @property
    def _bends(self) -> list[float]:
        """Levels at which curves bend, where they are known."""
        return self._engine.bends() if isinstance(self._engine, Finite) else []

    @cached_property
    def _distinguishers(self) -> Distinguishers:
        pairs, every = self._engine.both_orders()
        return Distinguishers(self._delta, pairs, every)

    @cached_property
    def _fixed(self) -> Largest | LargestWithNoise | None:
        """The pairs of neighbours of channels; None where there are none, or they are not known."""
        known = [atom.source is not None for atom in self._atoms if not atom.free]
        if not (known and all(known)):
            return None
        if self._is_finite:
            return Largest(every_pair(self._atoms))
        return LargestWithNoise(self._parts)

    def _fixed_delta(self, epsilon: float) -> Bracket:
        fixed = self._fixed
        return self._delta(epsilon) if fixed is None else certified(*fixed.delta(epsilon))

    def _fixed_epsilon(self, delta: float) -> Bracket:
        fixed = self._fixed
        return self._epsilon(delta) if fixed is None else certified(*fixed.epsilon(delta))
