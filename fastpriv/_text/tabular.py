"""Results as tables of other programs: a pandas frame, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastpriv._core.extras import optional
from fastpriv._text import html
from fastpriv._text.numbers import down, up

#: Characters that LaTeX reads as commands, and how they are written.
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
#: Characters with which spreadsheets begin formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Significant digits in a notebook.
_DIGITS = 6
#: How the names of columns end that hold lower bounds.
_FROM_BELOW = ("lower", "bound")


class Tabular(ABC):
    """A result that is a table: named columns of equal length."""

    @abstractmethod
    def columns_of_table(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns by name."""

    def _repr_html_(self) -> str:
        columns = self.columns_of_table()
        shown = [[_short(name, value) for value in c] for name, c in columns.items()]
        rows = list(zip(*shown, strict=True))
        return html.listing(repr(self).splitlines()[0], list(columns), rows)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame (needs the extra ``fastpriv[tables]``)."""
        pandas = optional("pandas", "tables")
        return pandas.DataFrame({k: list(v) for k, v in self.columns_of_table().items()})

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the table as CSV, written to ``path`` if one is given.

        Floats are written in full. A text that a spreadsheet would run as a formula is quoted
        with an apostrophe.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = self.columns_of_table()
        writer.writerow(columns)
        writer.writerows(zip(*(map(_cell, column) for column in columns.values()), strict=True))
        return written(text.getvalue(), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None, digits: int = 6) -> str:
        r"""Return a LaTeX ``tabular``, written to ``path`` if one is given.

        Parameters
        ----------
        path : path, optional
            Where to write it.
        digits : int
            Significant digits of numbers, rounded up.
        """
        columns = self.columns_of_table()
        rows = zip(*(map(lambda v: _tex(v, digits), c) for c in columns.values()), strict=True)
        lines = [
            rf"\begin{{tabular}}{{{'l' * len(columns)}}}",
            r"\hline",
            " & ".join(_tex(name, digits) for name in columns) + r" \\",
            r"\hline",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\hline",
            r"\end{tabular}",
        ]
        return written("\n".join(lines) + "\n", path)


def _short(name: str, value: Any) -> object:
    """Return a number in six digits, lower bounds rounded down and all others up."""
    if not isinstance(value, float):
        return "" if value is None else value
    return down(value, _DIGITS) if name.endswith(_FROM_BELOW) else up(value, _DIGITS)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else str(value)


def _tex(value: Any, digits: int) -> str:
    if isinstance(value, float):
        return r"$\infty$" if math.isinf(value) else up(value, digits)
    text = "" if value is None else str(value)
    return "".join(_TEX.get(mark, mark) for mark in text)


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return a text, written to ``path`` if one is given."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
