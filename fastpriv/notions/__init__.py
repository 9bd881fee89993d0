"""Notions of privacy, each declared once: what it is, how its levels combine, what it implies.

Audits, ledgers, reports, commands, figures and the documentation iterate over :data:`NOTIONS`.

Examples
--------
>>> import fastpriv as fp
>>> fp.notions.NOTIONS["pml"].title
'pointwise maximal leakage'
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
