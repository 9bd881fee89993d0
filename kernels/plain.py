"""Kernels as plain Python functions, for problems so small that compiling them takes longer.

A kernel declared with ``small`` is interpreted if its arrays have few entries, until that has
taken as long as compiling it, or as long as loading it if numba is imported and its cache has it.
The files of this folder are then imported once more, as a package in which this module stands for
``declare``; numba is not imported. Such kernels use no fastmath on as many entries, so that Python
and machine code return the same bits (``tests/kernels/test_plain.py``).
"""

import importlib
import sys
import time
from inspect import signature
from types import ModuleType

import numpy as np

from .loader import FILES, HERE, declared

#: Most entries of all arrays together, unless the kernel names a number.
ENTRIES = 512
#: CPU seconds in which a kernel is interpreted, about as many as numba takes for a small kernel.
SECONDS = 0.25
#: CPU seconds in which a numba that is already imported loads a kernel from its cache.
LOADING = 0.005

# What the files import from ``declare``.

Vector, Matrix, Cube = (("float64", 1), ("float64", 2), ("float64", 3))
Ints, IntMatrix, Shorts, ShortMatrix = (("int64", 1), ("int64", 2), ("int32", 1), ("int32", 2))
BoolMatrix, BoolCube, Words, WordMatrix = (("bool", 2), ("bool", 3), ("uint64", 1), ("uint64", 2))
Bytes, Cells, Codes = (("uint8", 1), ("uint16", 1), ("uint64", 1))
int64 = uint64 = int


def kernel(small=False, **flags):
    """Leave a function as it is, and note for how many entries it is interpreted."""

    def declare(function):
        function.entries = ENTRIES if small is True else small
        return function

    return declare


helper = kernel


def in_any_order(short):
    """Leave a helper as it is."""
    return short


def _function(name):
    """Return a kernel as Python sees it."""
    package = f"{__package__}.interpreted"
    if package not in sys.modules:
        sys.modules[f"{package}.declare"] = sys.modules[__name__]
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(HERE)]
    return getattr(importlib.import_module(f"{package}.{FILES[name]}"), name)


def _is(value, kind):
    """Whether an argument has its declared type."""
    if isinstance(kind, tuple):
        return (
            isinstance(value, np.ndarray)
            and (value.dtype.name, value.ndim) == kind
            and value.flags.c_contiguous
        )
    return isinstance(value, kind) and (kind is not int or type(value) is int)


def _number(value):
    return value.item() if isinstance(value, np.generic) else value


class Small:
    """A kernel that is interpreted at first, for a small problem."""

    def __init__(self, name):
        self.__name__, self.left = name, SECONDS
        self._made = None
        self.function = _function(name)
        self._entries = self.function.entries
        self._types = [each.annotation for each in signature(self.function).parameters.values()]

    def __call__(self, *arguments):
        """Return what the kernel returns."""
        if self.left > 0.0 and self._fits(arguments):
            before = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
            start = time.thread_time()
            try:
                with np.errstate(all="ignore"):
                    result = self.function(*arguments)
                return tuple(map(_number, result)) if type(result) is tuple else _number(result)
            except (ArithmeticError, ValueError):  # machine code returns an infinity or NaN
                for each, copy in zip(arguments, before, strict=True):
                    if isinstance(each, np.ndarray):
                        each[...] = copy
            finally:
                self.left -= time.thread_time() - start
                if self._made is None and "numba" in sys.modules:
                    self._look()
        return self.compiled()(*arguments)

    def compiled(self):
        """Return the kernel as numba has it, from now on under its name in the package."""
        if self._made is None:
            self._made = declared(self.__name__)
        setattr(sys.modules[__package__], self.__name__, self._made)
        return self._made

    def _look(self):
        """Stop interpreting, once loading would have taken less time, if a cache has the code."""
        if self.left < SECONDS - LOADING:
            from .cache import missing

            self._made = declared(self.__name__)
            if not missing([self._made]):
                self.left = 0.0

    def _fits(self, arguments):
        sizes = [each.size for each in arguments if isinstance(each, np.ndarray)]
        return (
            sum(sizes) <= self._entries
            and len(arguments) == len(self._types)
            and all(map(_is, arguments, self._types))
        )

    def __reduce__(self):
        """Pickle by name, as kernels are."""
        return named, (self.__name__,)


def named(name):
    """Return a kernel of the package."""
    return getattr(sys.modules[__package__], name)
