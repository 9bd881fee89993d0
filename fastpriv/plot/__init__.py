"""Figures, with the ``plot`` extra: each draws on given axes, or makes its own, and returns them.

Nothing is shown or saved, and no global setting of matplotlib is changed. Colour-blind readers can
distinguish the colours (Okabe and Ito); line styles and markers differ as well. ``channels`` draws
mechanisms, ``profiles`` privacy profiles, ``results`` results that draw themselves and audits, and
``papers`` figures of the papers.

Examples
--------
>>> import fastpriv as fp
>>> ax = fp.plot.leakage([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])
>>> ax.get_ylabel()
'leakage of the output (nats)'
"""

from fastpriv._core.names import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
