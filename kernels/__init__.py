"""Numba kernels: arrays in, arrays or numbers out. They know nothing of priors or channels.

A kernel is loaded when it is asked for; `KERNELS` declares all of them, for numba.
"""

from typing import TYPE_CHECKING, Any

from .loader import FILES, declared, load

if TYPE_CHECKING:
    from .balance import *
    from .boxes import *
    from .cache import writable_folder as writable_folder
    from .capacity import *
    from .climb import *
    from .cliques import *
    from .cone import *
    from .convex import *
    from .correlation import *
    from .declare import KERNELS as KERNELS
    from .descent import *
    from .first_order import *
    from .hockey_stick import *
    from .hyper import *
    from .information import *
    from .leakage import *
    from .lines import *
    from .logs import *
    from .mapping import *
    from .markov import *
    from .metric import *
    from .moments import *
    from .noise import *
    from .posterior import *
    from .records import *
    from .reports import *
    from .sampling import *
    from .sdpi import *
    from .selection import *
    from .shells import *
    from .spectral import *
    from .stack_information import *
    from .stacks import *
    from .sums import *
    from .tails import *
    from .transform import *
    from .type_forms import *
    from .vulnerability import *


def __getattr__(name: str) -> Any:
    """Load a kernel, or declare all of them."""
    if name in FILES:
        value = load(name)
    elif name == "KERNELS":
        value = {each: declared(each) for each in FILES}
    elif name == "writable_folder":
        from .cache import writable_folder as value
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the kernels."""
    return [*FILES, "KERNELS", "writable_folder"]
