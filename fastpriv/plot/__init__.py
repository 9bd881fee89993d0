"""Figures, with the ``plot`` extra: each draws on given axes, or makes its own, and returns them.

Nothing is shown or saved, and no global setting of matplotlib is changed. Colours are those of
Okabe and Ito, which colour-blind readers can tell apart; line styles and markers differ as well.

Examples
--------
>>> import fastpriv as fp
>>> ax = fp.plot.leakage([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])
>>> ax.get_ylabel()
'leakage of the output (nats)'
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
