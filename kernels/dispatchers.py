"""Functions that numba compiles for declared types, caches, and optimises with their callers.

This module and :mod:`fastpriv.kernels.cache` use private parts of numba. A numba newer than the
one they were tested with compiles a small kernel first; if that fails, kernels are plain
`numba.njit` functions (``declare.py``), slower to start and right.
"""

import copy
import gc
import warnings
from functools import partial

import numba
from numba.core import sigutils
from numba.core.compiler import Compiler, Flags
from numba.core.dispatcher import _FunctionCompiler
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral
from numba.core.typing.context import Context

from .cache import TESTED, KernelCache


class UndeclaredTypes(UserWarning):
    """A kernel is called with types that it is not declared for, and compiled for them."""


class _Remembering(Context):
    """Numba's typing of calls, which remembers its answers.

    Numba types each call of a function several times, and tries all forms of ``+`` or ``max``
    each time. This takes a tenth of the time of compiling.
    """

    def resolve_function_type(self, func, args, kws):
        """Return the signature of a call."""
        if kws or isinstance(func, str):
            return super().resolve_function_type(func, args, kws)
        found = self.known.get((func, args))
        if found is None:
            found = super().resolve_function_type(func, args, kws)
            self.known[func, args] = found
        return found


#: Signatures of calls, for each set of compiler flags.
_known = {}


class _Flags(Flags):
    """Numba's flags, which it looks signatures up by: compared without listing every default."""

    __slots__ = ()

    def values(self):
        """Return all flags by their names."""
        return {**_DEFAULTS, **self._values}

    def __eq__(self, other):
        return self is other or super().__eq__(other)

    def __hash__(self):
        return _HASH


_DEFAULTS = Flags().values()
_HASH = hash(Flags())  # numba's hash is one of the names, equal for all flags


class _Compiler(Compiler):
    """Numba's compiler, with calls typed once."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        flags = _Flags(flags)
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
        remembering = copy.copy(typingctx)
        remembering.__class__ = _Remembering
        remembering.known = _known.setdefault(flags.copy(), {})
        self.state.typingctx = remembering

    def compile_extra(self, func):
        """Compile a function into a library of its own."""
        library = self.state.targetctx.codegen().create_library(func.__qualname__)
        library.enable_object_caching()
        if hasattr(library._codegen, "_pass_builder"):  # an older numba prepares once per module
            library._optimize_functions = partial(_optimize_defined, library)
        self.state.library = library
        return super().compile_extra(func)


def _optimize_defined(library, module):
    """Optimise the functions of a module; numba prepares as much for each that is only declared."""
    module.data_layout = library._codegen._data_layout
    for function in module.functions:
        if not function.is_declaration:
            manager, builder = library._codegen._function_pass_manager()
            manager.run(function, builder)


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
        self._compiler = _Unfinished(function, self.targetdescr, options, {}, _Compiler)

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
        super().__init__(function, targetoptions=options, pipeline_class=_Compiler)
        self._cache = KernelCache(function.__name__)
        self.declared = ()

    def compile(self, sig):
        """Compile for a tuple of argument types, or load compiled code from the cache."""
        types, _ = sigutils.normalize_signature(sig)
        if types not in self.declared:
            text = f"kernel {self.__name__} is not declared for {types}: it is compiled for them"
            warnings.warn(text, UndeclaredTypes, stacklevel=2)
        # Compiling makes many objects that live on: the collector would visit them again and again.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile(types)
        finally:
            if collects:
                gc.enable()

    def __reduce__(self):
        """Pickle by name: processes share the kernel of their own package."""
        return self.__name__


def _try_out():
    """Compile a helper and a kernel that calls it; raise if numba's private parts differ."""
    options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True}
    twice = Helper(lambda x: 2 * x, {**options, "no_cpython_wrapper": True})

    def four_times(x):
        return twice(twice(x))

    kernel = Kernel(four_times, options)
    kernel.declared = ((numba.int64,),)
    kernel._cache.disable()
    if kernel(1) != 4:
        raise RuntimeError("a compiled kernel is wrong")
    for compiled in kernel.overloads.values():
        compiled._reduce()  # the cache keeps this


if numba.version_info.short > TESTED and not numba.config.DISABLE_JIT:
    _try_out()
