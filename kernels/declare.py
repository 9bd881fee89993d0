"""How a kernel is declared: once, by a decorator and the annotations of its arguments.

    @kernel(error_model="numpy")
    def entropy(p: Vector) -> float: ...

The annotations are array types that mypy understands and that carry numba's. They are the only
types a kernel is compiled for: `warm_up` compiles all of them, and a call with others warns.
"""

import inspect
import itertools
import logging
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
from numba import boolean, config, float64, int32, int64, njit, uint8, uint16, uint32, uint64
from numpy.typing import NDArray

try:
    from .dispatchers import Helper, Kernel
except Exception:  # the private parts of this numba are others: nothing is cached
    Helper = Kernel = None

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
#: Values of a record in the narrowest type that holds them; all such arguments have one type.
Codes = Annotated[
    NDArray[np.unsignedinteger[Any]], uint8[::1], uint16[::1], uint32[::1], uint64[::1]
]

# A helper without ``fastmath`` or ``error_model`` would take those of the kernel that happens to be
# compiled first, and its bits would depend on the order of calls. So both are always stated.
_OPTIONS = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, "fastmath": False}
_KERNEL = {**_OPTIONS, "error_model": "python"}
_HELPER = {**_OPTIONS, "error_model": "numpy", "no_cpython_wrapper": True}
_SCALARS = {bool: boolean, int: int64, float: float64, np.uint64: uint64}

#: Every kernel by its name.
KERNELS: dict[str, Any] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


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


def kernel(small: bool | int = False, **flags: Any) -> Callable[[Function], Function]:
    """Declare a function that Python calls. Flags are numba's: ``error_model``, ``fastmath``.

    With ``small``, Python interprets it for small problems (``plain.py``, by ``loader.py``): True
    for the usual number of entries, or a number.

    Kernels release the GIL and run on one thread. No ``parallel=True``: two Python threads that
    call one parallel kernel abort the process.
    """

    def declare(function):
        if config.DISABLE_JIT:
            return _plain(function)
        declared = _declared(function)
        kernel = Kernel(function, {**_KERNEL, **flags}) if Kernel else _njit(function, flags)
        kernel.declared = declared
        KERNELS[function.__name__] = kernel
        return kernel

    return declare


def helper(**flags: Any) -> Callable[[Function], Function]:
    """Declare a function that only kernels and other helpers call.

    It has no entry from Python, which takes as long to compile as a small function itself.
    """

    def declare(function):
        if config.DISABLE_JIT:
            return function
        if Helper is None:
            return _njit(function, flags)
        return Helper(function, {**_HELPER, **flags})

    return declare


def in_any_order(short: Function) -> Function:
    """Return a helper for long sums: as ``short``, but several terms may be added at a time."""
    return helper(fastmath={"contract", "reassoc"})(getattr(short, "py_func", short))


def _njit(function, flags):
    """Compile as numba does by itself: in every process, and helpers twice."""
    return njit(nogil=True, **{"fastmath": False, **flags})(function)


def _plain(function):
    """Let a kernel that is not compiled warn of nothing and return Python's numbers, too."""

    @wraps(function)
    def call(*arguments):
        with np.errstate(all="ignore"):
            result = function(*arguments)
        if isinstance(result, tuple):
            return tuple(map(_number, result))
        return _number(result)

    return call


def _number(value):
    return value.item() if isinstance(value, np.generic) else value


# Numba logs each step of each compilation; only a caller who asks for that should see it.
_numba_logger = logging.getLogger("numba")
if _numba_logger.level == logging.NOTSET:
    _numba_logger.setLevel(logging.WARNING)
