"""Accounting: the joint privacy cost of many steps, in every notion of privacy.

Examples
--------
>>> import fastpriv as fp
>>> release = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
>>> release.self_compose(100).epsilon(1e-6)
Bracket(94.28986789, 94.2898679)
"""

from fastpriv._core.names import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
