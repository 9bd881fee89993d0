"""fastpriv: how private is a finite mechanism, and which one is best."""

import os as _os
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder

import lazy_loader as _lazy

from fastpriv._core.tables import connect as _connect

__version__ = "0.1.0"

_find, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
#: Modules whose names a misplaced name is looked up in.
_MODULES = ("accounting", "mechanisms", "plot", "gains", "notions")


def __getattr__(name):
    """Load a public name; an unknown one is answered with where it is, or what is near it."""
    try:
        return _find(name)
    except AttributeError:
        if name.startswith("_"):
            raise
        message = f"module 'fastpriv' has no attribute {name!r}{_hint(name)}"
        raise AttributeError(message) from None


def _hint(name):
    from fastpriv.errors import did_you_mean

    for module in _MODULES:
        if name in getattr(_find(module), "__all__", ()):
            return f"; it is fastpriv.{module}.{name}"
    return did_you_mean(name, __all__)


class _Checkout:
    """Find the kernels of a checkout: they stand beside this folder, and in it in a wheel."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find ``fastpriv.kernels`` in the folder above, and nothing else there."""
        if name != "fastpriv.kernels":
            return None
        return _PathFinder.find_spec(name, [_os.path.dirname(__path__[0])])


if not _os.path.isfile(_os.path.join(__path__[0], "kernels", "__init__.py")):
    _sys.meta_path.insert(0, _Checkout)  # before those of another checkout that is installed


def _levels():
    from fastpriv.measures.levels import LEVELS

    return LEVELS


def _programs():
    from fastpriv.design.registry import PROGRAMS

    return PROGRAMS


def _channels():
    import fastpriv.channels

    return fastpriv.channels


def _priors():
    import fastpriv.priors

    return fastpriv.priors


def _foreign():
    from fastpriv.adapters.foreign import FOREIGN

    return FOREIGN


# What lower layers ask of higher ones: levels and programs of a notion, classes to read from JSON,
# and profiles of what other libraries made.
_connect(levels=_levels, programs=_programs, channel=_channels, prior=_priors, foreign=_foreign)
