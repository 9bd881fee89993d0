"""Figures that papers take: their PDF and PostScript files embed fonts as Type 42 (TrueType).

Journals refuse the Type 3 fonts that matplotlib writes by default. The choice is read when a file
is written, so it belongs to the figure and not to the moment in which it is drawn.
"""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.figure import Figure

TYPE_42: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}


class PaperFigure(Figure):
    """A figure whose files have fonts of Type 42."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file; see :meth:`matplotlib.figure.Figure.savefig`."""
        with matplotlib.rc_context(TYPE_42):
            super().savefig(fname, **options)
