"""fastpriv: how private is a finite mechanism, and which one is best."""

from pathlib import Path as _Path

import lazy_loader as _lazy

__version__ = "0.1.0"

# In a checkout the kernels stand beside the package; in a wheel they stand inside it.
if not (_Path(__file__).parent / "kernels").is_dir():
    __path__.append(str(_Path(__file__).parents[1]))

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
