"""fastpriv: how private is a finite mechanism, and which one is best."""

import os as _os
import sys as _sys
from importlib.machinery import PathFinder as _PathFinder

from fastpriv._core.names import attach as _attach
from fastpriv._core.tables import connect as _connect

__version__ = "0.1.0"

#: Modules whose names a misplaced name is looked up in.
_MODULES = ("accounting", "mechanisms", "plot", "gains", "notions")


def _hint(name):
    """Return where a name is, or what is near it, here before the other modules."""
    from fastpriv.errors import did_you_mean

    if name == "adapters":
        return "; write import fastpriv.adapters"
    others = {module: getattr(__getattr__(module), "__all__", ()) for module in _MODULES}
    for module, names in others.items():
        if name in names:
            return f"; it is fastpriv.{module}.{name}"
    full = [f"fastpriv.{module}.{each}" for module, names in others.items() for each in names]
    near = did_you_mean(name, __all__)
    return near or did_you_mean(name, [each.rpartition(".")[2] for each in full], full)


__getattr__, __dir__, __all__ = _attach(__name__, __file__, _hint)


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
