"""How a kernel is declared: once, by a decorator and the annotations of its arguments.

    @kernel(error_model="numpy")
    def entropy(p: Vector) -> float: ...

The annotations are array types that mypy understands and that carry numba's. They are the only
types a kernel is compiled for: `warm_up` compiles all of them, and a call with others warns.
"""

import inspect
import itertools
import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
from numba import boolean, float64, int32, int64, uint8, uint16, uint32, uint64
from numba.core import config, sigutils
from numba.core.compiler import Compiler
from numba.core.dispatcher import _FunctionCompiler
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral
from numpy.typing import NDArray

from .cache import KernelCache

Vector = Annotated[NDArray[np.float64], float64[::1]]
Matrix = Annotated[NDArray[np.float64], float64[:, ::1]]
Cube = Annotated[NDArray[np.float64], float64[:, :, ::1]]
Ints = Annotated[NDArray[np.int64], int64[::1]]
IntMatrix = Annotated[NDArray[np.int64], int64[:, ::1]]
Shorts = Annotated[NDArray[np.int32], int32[::1]]
ShortMatrix = Annotated[NDArray[np.int32], int32[:, ::1]]
BoolMatrix = Annotated[NDArray[np.bool_], boolean[:, ::1]]
BoolCube = Annotated[NDArray[np.bool_], boolean[:, :, ::1]]
Words = Annotated[NDArray[np.uint64], uint64[::1]]
WordMatrix = Annotated[NDArray[np.uint64], uint64[:, ::1]]
Bytes = Annotated[NDArray[np.uint8], uint8[::1]]
Cells = Annotated[NDArray[np.unsignedinteger[Any]], uint16[::1]]
#: Values of a row in the narrowest type that holds them; all such arguments have the same type.
Codes = Annotated[
    NDArray[np.unsignedinteger[Any]], uint8[::1], uint16[::1], uint32[::1], uint64[::1]
]

_OPTIONS = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True}
_SCALARS = {bool: boolean, int: int64, float: float64, np.uint64: uint64}

#: Every kernel by its name.
KERNELS: dict[str, Any] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


class UndeclaredTypes(UserWarning):
    """A kernel is called with types that it is not declared for, and compiled for them."""


class _Unfinished(_FunctionCompiler):
    """Compile to LLVM's language and no further."""

    def _customize_flags(self, flags):
        flags.no_compile = True
        return flags


class _Typed(CPUDispatcher):
    """A numba function that takes a literal 0 for an integer like others."""

    def get_call_template(self, args, kws):
        """Resolve a call from another function; a literal 0 is an integer like others."""
        return super().get_call_template(tuple(map(unliteral, args)), kws)


class Helper(_Typed):
    """A numba function that only numba functions call: it is optimised together with them.

    Numba would optimise it by itself first, turn it into machine code that nothing calls, and
    optimise it once more in every caller.
    """

    def __init__(self, function, options):
        super().__init__(function, targetoptions=options)
        self._compiler = _Unfinished(function, self.targetdescr, options, {}, Compiler)

    def add_overload(self, cres):
        """Keep a compiled form; callers know it by its name, since it has no address."""
        library = cres.library
        library._optimize_final_module = lambda: None
        library._finalize_final_module = partial(_finish, library)
        self.targetctx.insert_user_function(cres.fndesc.mangled_name, cres.fndesc, [library])
        self.overloads[tuple(cres.signature.args)] = cres

    def get_overload(self, sig):
        """Return the name of the form for the types of a call."""
        types, _ = sigutils.normalize_signature(sig)
        return self.overloads[tuple(types)].fndesc.mangled_name


def _finish(library):
    """Make a library ready to be linked, without machine code."""
    library._finalize_dynamic_globals()
    library._finalized = True


class Kernel(_Typed):
    """A numba function that is compiled for the types it is declared for, and cached."""

    def __init__(self, function, options):
        super().__init__(function, targetoptions=options)
        self._cache = KernelCache(function.__name__)
        self.declared = _declared(function)

    def compile(self, sig):
        """Compile for a tuple of argument types, or load what was compiled before."""
        types, _ = sigutils.normalize_signature(sig)
        if types not in self.declared:
            text = f"kernel {self.__name__} is not declared for {types}: it is compiled for them"
            warnings.warn(text, UndeclaredTypes, stacklevel=2)
        return super().compile(types)

    def __reduce__(self):
        """Pickle by name: processes share the kernel of their own package."""
        return self.__name__


def _declared(function):
    """Return the tuples of argument types that the annotations of a function stand for."""
    choices = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = parameter.annotation
        types = (_SCALARS[kind],) if kind in _SCALARS else get_args(kind)[1:]
        if not types:
            raise TypeError(f"argument {name} of kernel {function.__name__} needs a declared type")
        choices.append(types)
    widths = {len(types) for types in choices} - {1}
    count = widths.pop() if widths else 1
    rows = (itertools.islice(itertools.cycle(types), count) for types in choices)
    return tuple(zip(*rows, strict=True)) if choices else ((),)


def kernel(**flags: Any) -> Callable[[Function], Function]:
    """Declare a function that Python calls. Flags are numba's: ``error_model``, ``fastmath``.

    Kernels release the GIL and run on one thread. No ``parallel=True``: two Python threads that
    call one parallel kernel abort the process.
    """

    def declare(function):
        if config.DISABLE_JIT:
            return function
        KERNELS[function.__name__] = Kernel(function, {**_OPTIONS, **flags})
        return KERNELS[function.__name__]

    return declare


def helper(**flags: Any) -> Callable[[Function], Function]:
    """Declare a function that only kernels and other helpers call.

    It has no entry from Python, which takes as long to compile as a small function itself.
    """

    def declare(function):
        if config.DISABLE_JIT:
            return function
        return Helper(function, {**_OPTIONS, "no_cpython_wrapper": True, **flags})

    return declare


# Numba logs each step of each compilation; only a caller who asks for that should see it.
_numba_logger = logging.getLogger("numba")
if _numba_logger.level == logging.NOTSET:
    _numba_logger.setLevel(logging.WARNING)
