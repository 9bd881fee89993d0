"""Short texts that name something with parameters: ``hamming:n=3,m=2,epsilon=1``.

Names stand for plain functions, whose signatures have the parameters and their types. Their
docstrings are shown by ``--list``. A value may be a list, ``p=0.7,0.2,0.1``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastpriv.errors import InvalidInput, described, did_you_mean

Makers = Mapping[str, Callable[..., Any]]
# Types of parameters, by the names that signatures give them.
Ints = Sequence[int]
Floats = Sequence[float]


def parts(spec: str) -> tuple[str, dict[str, list[str]]]:
    """Split a spec into its name and the words of each parameter."""
    name, _, rest = spec.partition(":")
    given: dict[str, list[str]] = {}
    words: list[str] | None = None
    for piece in rest.split(",") if rest else []:
        key, equals, value = (part.strip() for part in piece.partition("="))
        if equals:
            if key in given:
                raise InvalidInput(f"{key} must be given once; got {described(spec)}.")
            words = given[key] = [value]
        elif words is None:
            raise InvalidInput(f"{described(spec)} must name its parameters, such as {name}:n=3.")
        else:
            words.append(piece.strip())
    return name, given


def make(spec: str, makers: Makers, what: str, known: Mapping[str, Any]) -> Any:
    """Call the function a spec names; ``known`` fills parameters that it leaves out."""
    name = spec.partition(":")[0]
    if name not in makers:
        raise InvalidInput(
            f"there is no {what} {described(name)}{did_you_mean(name, makers)}; it must be a .csv "
            f"or .npy file or one of {', '.join(makers)}"
        )
    _, given = parts(spec)
    parameters = inspect.signature(makers[name]).parameters
    public = [key for key in parameters if not key.startswith("_")]
    for key in given:
        if key not in public:
            hint = did_you_mean(key, public)
            raise InvalidInput(
                f"{name} has no parameter {described(key)}{hint}; it is written "
                f"{usage(makers)[name]}"
            )
    values = {
        key: _value(given[key], str(p.annotation), f"{key} of {name}")
        for key, p in parameters.items()
        if key in given
    }
    for key, parameter in parameters.items():
        if key not in values and key in known:
            values[key] = known[key]
        if key not in values and parameter.default is inspect.Parameter.empty:
            missing = f"--{key[1:]}" if key.startswith("_") else f"{key}=..."
            raise InvalidInput(f"{name} needs {missing}; it is written {usage(makers)[name]}")
    return makers[name](**values)


def _value(words: list[str], kind: str, name: str) -> Any:
    """Return the words of one parameter as the type of its annotation."""
    if kind == "str":
        return ",".join(words)  # names of files may have commas
    read, many = _KINDS[kind]
    try:
        values = [read(word) for word in words]
    except ValueError:
        expected = "whole numbers" if read is int else "numbers"
        raise InvalidInput(
            f"{name} must be {expected}; got {described(','.join(words))}."
        ) from None
    if many:
        return values
    if len(values) != 1:
        raise InvalidInput(f"{name} must be one value; got {described(','.join(words))}.")
    return values[0]


_KINDS: Mapping[str, tuple[Callable[[str], Any], bool]] = {
    "int": (int, False),
    "float": (float, False),
    "Ints": (int, True),
    "Floats": (float, True),
}


def usage(makers: Makers) -> dict[str, str]:
    """Return for every name how a spec is written, optional parameters in brackets."""
    usages = {}
    for name, maker in makers.items():
        text = ""
        for key, parameter in inspect.signature(maker).parameters.items():
            if key.startswith("_"):
                continue
            word = f"{key}={_SHAPES[str(parameter.annotation)]}"
            needed = parameter.default is inspect.Parameter.empty
            text += f",{word}" if needed else f"[,{word}]"
        usages[name] = name + (":" + text.lstrip(",") if text else "")
    return usages


_SHAPES = {"int": "K", "float": "X", "str": "FILE", "Ints": "K,K,...", "Floats": "X,X,..."}


def listed(makers: Makers) -> str:
    """Return every name with its parameters and its meaning."""
    return "\n".join(
        f"  {text}\n      {inspect.getdoc(makers[name])}" for name, text in usage(makers).items()
    )
