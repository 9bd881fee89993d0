"""Named mechanisms of the papers, each a small constructor or a law with its calibration."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
