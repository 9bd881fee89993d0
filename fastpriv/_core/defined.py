"""Objects that are equal, hashed and written down by what defines them."""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from fastpriv._core.infinities import finite, numbers
from fastpriv._core.tables import table
from fastpriv._core.validation import Ints
from fastpriv.errors import FastprivError, InvalidInput, cause, described, did_you_mean

#: Version of the JSON form.
VERSION = 1

#: Families whose classes a higher layer declares, so that reading one imports that layer.
_ABOVE = ("channel", "prior")

#: Most records of a definition: as an array of numbers they take 2 GB.
_MOST_RECORDS = 1 << 28

#: What reading something of another form raises; arrays and views have errors of their own.
_MISSHAPEN = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    NotImplementedError,
)

Self = TypeVar("Self", bound="Defined")


class Defined:
    """Something immutable that a few numbers and arrays define.

    A class states what defines it by ``definition``; ``from_definition`` makes it from that again.
    Two objects of one class are equal where their definitions are, float for float, and hash
    alike. JSON holds the definition, ``{"fastpriv": "prior", "version": 1, "kind": "Dense", ...}``,
    with arrays as nested lists, so that floats come back as they were.

    Many classes have a class method ``of(*parts)``, which makes an object without checks. The parts
    are checked, owned by the new object and never written to again.
    """

    #: What the family of classes is called in JSON.
    _family: ClassVar[str]
    #: The classes of every family, by their names.
    _kinds: ClassVar[dict[str, dict[str, type[Defined]]]] = {}

    #: Whether the class is its parent in another form: equal to it and written like it.
    _form: ClassVar[bool] = False

    def __init_subclass__(cls, family: str | None = None, form: bool = False, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls._form = form
        if family is not None:
            cls._family = family
        if "definition" in cls.__dict__:
            Defined._kinds.setdefault(cls._family, {})[cls.__name__] = cls

    def definition(self) -> Mapping[str, Any]:
        """Return the numbers, texts, arrays, lists and objects that define the object."""
        raise InvalidInput(
            f"a {type(self).__name__} cannot be compared or written down by what "
            "defines it. Compare its matrix() instead."
        )

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Any:
        """Make the object that a definition read from JSON describes. Checks what it is given."""
        raise NotImplementedError

    @cached_property
    def identity(self) -> bytes:
        """Digest of the definition. Cost O(entries), once."""
        digest = hashlib.sha256(_kind_of(self).__name__.encode())
        _feed(digest, self.definition())
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        kind = _kind_of(self)
        if kind is Defined or not isinstance(other, Defined) or kind is not _kind_of(other):
            return NotImplemented
        return self.identity == other.identity

    def __hash__(self) -> int:
        return object.__hash__(self) if _kind_of(self) is Defined else hash(self.identity)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain lists and numbers; ``from_dict`` reads it."""
        kind = _kind_of(self)
        if kind is Defined:
            raise InvalidInput(
                f"a {type(self).__name__} does not say what defines it. "
                "Use a class of fastpriv, or describe it as a matrix."
            )
        fields = {name: _plain(value) for name, value in self.definition().items()}
        return {"fastpriv": self._family, "version": VERSION, "kind": kind.__name__, **fields}

    def to_json(self) -> str:
        """Return the definition as JSON; ``from_json`` reads it."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls: type[Self], given: Mapping[str, Any]) -> Self:
        """Make the object that ``to_dict`` described, of whatever kind it was."""
        made = load(given)
        # A form, such as Uniform, is written like its parent and read as that.
        written = next(base for base in cls.__mro__ if not getattr(base, "_form", False))
        if not isinstance(made, written):
            raise InvalidInput(
                f"text must describe a {cls.__name__}; got a {type(made).__name__}. Call "
                f"{type(made).__name__}.from_json."
            )
        return made  # type: ignore[return-value]

    @classmethod
    def from_json(cls: type[Self], text: str | os.PathLike[str]) -> Self:
        """Make the object that ``to_json`` described: from its text, or the path of a file of it.

        Parameters
        ----------
        text : str or path
            The JSON, or a file that holds it.
        """
        return cls.from_dict(parsed(text))


def parsed(text: str | os.PathLike[str]) -> Any:
    """Read JSON from its text, or from the path of a file of it."""
    if not isinstance(text, str | os.PathLike):
        raise InvalidInput(
            f"text must be JSON or the path of a file; got {described(text)}. Give what "
            "to_json wrote."
        )
    if isinstance(text, os.PathLike) or not str(text).lstrip().startswith("{"):
        try:
            text = Path(text).read_text("utf-8")
        except (OSError, ValueError) as problem:
            raise InvalidInput(
                "text must be JSON of a fastpriv object, or the path of a file with it; "
                f"{described(text)} cannot be read. Give what to_json wrote."
            ) from problem
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"text must be valid JSON, as to_json writes it: {problem}.") from None


def headed(family: str, kind: str, fields: Mapping[str, Any]) -> str:
    """Write JSON of the same form for an object that is not a :class:`Defined`."""
    whole = {"fastpriv": family, "version": VERSION, "kind": kind} | dict(fields)
    return json.dumps({name: finite(value) for name, value in whole.items()}, allow_nan=False)


def unheaded(text: str | os.PathLike[str], family: str, kind: str) -> Mapping[str, Any]:
    """Read what :func:`headed` wrote, and check that it is of the right kind and version."""
    given = parsed(text)
    head = given if isinstance(given, Mapping) else {}
    if (head.get("fastpriv"), head.get("kind")) != (family, kind):
        raise InvalidInput(f"text must be JSON of a {kind}. Give what its to_json wrote.")
    _check_version(given)
    return {name: numbers(value) for name, value in given.items()}


def _check_version(given: Mapping[str, Any]) -> None:
    version = given.get("version")
    if not isinstance(version, Integral) or version != VERSION:
        raise InvalidInput(
            f"version must be {VERSION}; got {described(version)}. Write the object again with "
            "this version of fastpriv."
        )


def _kind_of(item: Defined) -> type[Defined]:
    """Return the class whose definition an object has: its own, or its parent for a form.

    Return Defined for a class without a definition of its own, such as a subclass that changes an
    answer. Its objects equal only themselves and are not written.
    """
    kind: type[Defined] = type(item)
    while kind._form:
        kind = kind.__mro__[1]
    return kind if "definition" in kind.__dict__ else Defined


def load(given: Any) -> Any:
    """Make an object from what ``to_dict`` returned."""
    if not isinstance(given, Mapping) or "fastpriv" not in given or "kind" not in given:
        raise InvalidInput(
            'an object of fastpriv must be {"fastpriv": ..., "version": ..., "kind": ...}. Give it '
            "as to_json wrote it."
        )
    _check_version(given)
    family, name = given["fastpriv"], given["kind"]
    if not (isinstance(family, str) and isinstance(name, str)):
        raise InvalidInput(
            f"kind must be a {described(family)} of fastpriv; got {described(name)}. Give what "
            "to_json wrote."
        )
    if family in _ABOVE:
        table(family)
    kinds = Defined._kinds.get(family, {})
    kind = kinds.get(name)
    if kind is None:
        raise InvalidInput(f"there is no {family:.20} {name:.40}{did_you_mean(name, kinds)}")
    try:
        return kind.from_definition(given)
    except FastprivError:
        raise
    except _MISSHAPEN as problem:
        raise InvalidInput(
            f"this does not describe a {kind.__name__}: {cause(problem)}. Give what to_json wrote."
        ) from None


def runs(assignment: Ints) -> list[list[int]]:
    """Write which kind each row has as runs [kind, rows]: a million equal rows are one."""
    return [[kind, len(list(rows))] for kind, rows in groupby(assignment.tolist())]


def unrolled(given: Sequence[Sequence[int]], kinds: int) -> Ints:
    """Read what :func:`runs` wrote."""
    wanted = "rows must be runs [kind, number of rows], one for each row at least"
    try:
        pairs = [(operator.index(kind), operator.index(count)) for kind, count in given]
    except (TypeError, ValueError):
        raise InvalidInput(wanted) from None
    if not pairs or not all(0 <= kind < kinds and count >= 1 for kind, count in pairs):
        raise InvalidInput(wanted)
    if sum(count for _, count in pairs) > _MOST_RECORDS:
        raise InvalidInput("rows must be at most 2^28 records; got more. Use fewer records.")
    table = np.array(pairs, dtype=np.int64)
    return np.repeat(table[:, 0], table[:, 1])


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest so that different definitions give different bytes."""
    if isinstance(value, Mapping):
        _feed(digest, sorted(value.items()))
    elif isinstance(value, np.ndarray):
        digest.update(f"a{value.dtype.str}{value.shape}".encode())
        # Adding zero makes one number of 0.0 and -0.0.
        digest.update(np.ascontiguousarray(value + 0).tobytes())
    elif isinstance(value, Defined):
        digest.update(b"d" + value.identity)
    elif isinstance(value, list | tuple):
        digest.update(f"l{len(value)}".encode())
        for item in value:
            _feed(digest, item)
    else:
        digest.update(f"{type(value).__name__}{value!r};".encode())


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, Defined):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
