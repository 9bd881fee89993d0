"""Self-contained HTML pages, for narrow and wide screens, dark mode and print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fastpriv._text.numbers import up

#: A browser may load and run nothing for the page but the styles in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

#: Most rows of a table in a notebook.
_LISTED = 20

_STYLE = """
.fp-audit{--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--card:#f6f8fa;--page:#fff;--blue:#0550ae;
 --red:#b3261e;--redbg:#fdecea;--amber:#8a5300;--amberbg:#fff6e0;--green:#1a6b33;--greenbg:#e8f5ec;
 color:var(--ink);background:var(--page);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
 "Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere;box-sizing:border-box;
 max-width:72rem;margin:0 auto;padding:1.25rem 1rem 3rem}
.fp-audit *{box-sizing:border-box}
.fp-audit h1{font-size:1.6rem;line-height:1.2;margin:.25rem 0}
.fp-audit h2{font-size:1.15rem;margin:2.2rem 0 .6rem;padding-bottom:.25rem;
 border-bottom:2px solid var(--line)}
.fp-audit p{margin:.25rem 0}
.fp-audit code{font:.95em ui-monospace,SFMono-Regular,Consolas,"Liberation Mono",monospace}
.fp-audit .soft,.fp-audit small{color:var(--soft);font-size:.85rem}
.fp-audit small{display:block;line-height:1.35;font-weight:400}
.fp-audit .cards{display:grid;gap:.75rem;margin-top:1.25rem;
 grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr))}
.fp-audit .card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;
 padding:.75rem .9rem}
.fp-audit .card b{display:block;font-size:1.35rem;line-height:1.3;color:var(--blue)}
.fp-audit .plots{display:grid;gap:1rem;align-items:start}
.fp-audit figure{margin:0;border:1px solid var(--line);border-radius:.5rem;padding:.6rem}
.fp-audit figure svg{display:block;width:100%;height:auto;max-width:32rem;margin:0 auto;
 stroke-linejoin:round;stroke-linecap:butt}
.fp-audit figcaption{color:var(--soft);font-size:.85rem;margin-bottom:.4rem}
.fp-audit table{border-collapse:collapse;width:100%;table-layout:fixed}
.fp-audit th,.fp-audit td{text-align:left;vertical-align:top;padding:.55rem .6rem;background:none;
 border-bottom:1px solid var(--line)}
.fp-audit thead th{font-size:.85rem;color:var(--soft)}
.fp-audit tbody th{font-weight:600}
.fp-audit .num{font-variant-numeric:tabular-nums;font-weight:600;color:var(--blue)}
.fp-audit .w1{width:27%}.fp-audit .w2{width:21%}
.fp-audit .verdict{border:1px solid;border-left-width:.5rem;border-radius:.5rem;
 padding:.75rem .9rem;margin-top:1rem}
.fp-audit .verdict>b{display:block;font-size:1.35rem;line-height:1.3}
.fp-audit .verdict p,.fp-audit .verdict li{color:var(--ink)}
.fp-audit .bad{color:var(--red);background:var(--redbg)}
.fp-audit .bad li{color:var(--red);font-weight:600}
.fp-audit .warn{color:var(--amber);background:var(--amberbg)}
.fp-audit .good{color:var(--green);background:var(--greenbg)}
.fp-audit dl{display:grid;grid-template-columns:minmax(8rem,27%) 1fr;gap:.3rem .6rem;margin:.5rem 0}
.fp-audit dt{font-weight:600}.fp-audit dd{margin:0}
.fp-audit details{margin-top:2.2rem}.fp-audit summary{font-weight:600;cursor:pointer}
.fp-audit ul{padding-left:1.2rem;margin:.5rem 0}.fp-audit li{margin:.35rem 0}
@media (prefers-color-scheme:dark){
 .fp-audit{--ink:#e6edf3;--soft:#9da7b3;--line:#3d444d;--card:#161b22;--page:#0d1117;--blue:#79c0ff;
  --red:#ff9a8f;--redbg:#3a1512;--amber:#f0c36a;--amberbg:#33270d;--green:#7fd99a;--greenbg:#10301b}}
@media (min-width:50rem),print{
 .fp-audit .plots{grid-template-columns:1fr 1fr}
 .fp-audit figure:first-child{grid-row:span 2}}
@media screen and (max-width:40rem){
 .fp-audit thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
 .fp-audit table,.fp-audit tbody,.fp-audit tr,.fp-audit tbody th,.fp-audit td{display:block}
 .fp-audit tr{border:1px solid var(--line);border-radius:.5rem;margin:.6rem 0;padding:.5rem .75rem}
 .fp-audit tbody th,.fp-audit td{border:0;padding:.12rem 0}
 .fp-audit .num{font-size:1.15rem}
 .fp-audit dl{display:block}.fp-audit dd{margin:0 0 .5rem}}
@media print{
 .fp-audit{--ink:#000;--soft:#444;--line:#bbb;--card:#fff;--page:#fff;--blue:#000;
  --red:#a00;--redbg:#fff;--amber:#734500;--amberbg:#fff;--green:#14532b;--greenbg:#fff;
  font-size:10.5pt;max-width:none;padding:0 2px}
 .fp-audit .verdict{-webkit-print-color-adjust:exact;print-color-adjust:exact;break-inside:avoid}
 .fp-audit tr,.fp-audit figure,.fp-audit .card,.fp-audit li{break-inside:avoid}
 .fp-audit h2{break-after:avoid}
 .fp-audit details::details-content{content-visibility:visible;block-size:auto}
 .fp-audit thead{display:table-header-group}
 .fp-audit .cards{grid-template-columns:repeat(4,1fr);gap:.4rem}
 .fp-audit figure svg{max-height:11cm}.fp-audit figure+figure svg{max-height:4.8cm}
 .fp-audit .card{padding:.4rem .5rem}.fp-audit .card b{font-size:1rem}}
"""
_BODY = """html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:#fff}
@media (prefers-color-scheme:dark){body{background:#0d1117}}
@media print{html{color-scheme:light}body{background:#fff}@page{margin:16mm}}
"""


def document(title: str, content: str) -> str:
    """Return a page that fetches nothing and runs nothing; ``content`` is HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{_BODY}{_STYLE}</style>\n</head>\n<body>\n"
        f'<main class="fp-audit">\n{content}</main>\n</body>\n</html>\n'
    )


def part(content: str) -> str:
    """Return the content for a page that exists, such as a notebook."""
    return f'<style>{_STYLE}</style>\n<div class="fp-audit">\n{content}</div>\n'


def section(title: str, heads: tuple[str, str, str], rows: Iterable[str]) -> str:
    """Return a table under a heading; ``rows`` come from :func:`row`."""
    named = "".join(
        f'<th scope="col" role="columnheader"{f" class=w{i}" if i < 3 else ""}>{head}</th>'
        for i, head in enumerate(heads, 1)
    )
    return (
        f'<h2>{escape(title)}</h2>\n<table role="table" aria-label="{escape(title)}">\n'
        f'<thead role="rowgroup"><tr role="row">{named}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{"".join(rows)}</tbody>\n</table>\n'
    )


def row(head: str, number: str, text: str) -> str:
    """Return a row of a table; the cells are HTML already."""
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{head}</th>'
        f'<td role="cell" class="num">{number}</td><td role="cell">{text}</td></tr>\n'
    )


def listed(title: str, items: list[str]) -> str:
    """Return a list under a heading."""
    lines = "".join(f"<li>{escape(item)}</li>\n" for item in items)
    return f"<h2>{escape(title)}</h2>\n<ul>\n{lines}</ul>\n"


def facts(title: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and their values under a heading."""
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n" for name, value in pairs)
    return f"<h2>{escape(title)}</h2>\n<dl>\n{lines}</dl>\n"


def fold(title: str, content: str) -> str:
    """Return a part that is closed until a reader opens it; ``content`` is HTML already."""
    return f"<details>\n<summary>{escape(title)}</summary>\n{content}</details>\n"


def listing(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    """Return a small table for notebooks: a title, at most 20 rows, and a note.

    Texts are escaped. Floats are rounded up to six digits.
    """
    cells = [[_cell(value) for value in given] for given in rows]
    left = len(cells) - _LISTED
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in given)}</tr>\n" for given in cells[:_LISTED]
    )
    more = f"and {left:,} more rows; " if left > 0 else ""
    small = f"<p><small>{escape(more + note)}</small></p>\n" if more or note else ""
    return (
        f"<div><b>{escape(title)}</b>\n<table>\n<thead><tr>{top}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n{small}</div>\n"
    )


def _cell(value: object) -> str:
    return escape(up(value, 6) if isinstance(value, float) else str(value))
