"""Named mechanisms of the papers, each a small constructor or a distribution with its calibration.

Examples
--------
>>> import fastpriv as fp
>>> fp.mechanisms.MaxEntropyNoise(1, 2.0)
MaxEntropyNoise(p=1, distortion=2, entropy=2.406059)
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
