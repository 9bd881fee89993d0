"""The ways to break a source: one operator, comparison, direction or constant at a time."""

from __future__ import annotations

import ast
import re

#: Lines that decide which way a number is rounded.
ROUNDING = re.compile(
    r"\b(ULP|UNIT|U|LEAST|WIDER|ENTROPY|ROUND_UP|EDGE|LOST|_SLACK|raised|lowered|directed|round_up"
    r"|\w+_(up|down)|nextafter|slack|error|margin|doubt)\b"
)
#: Names that count rounding errors.
UNITS = ("U", "UNIT", "ULP", "WIDER", "LEAST", "LIBM")
PRIMITIVES = ("sum", "product", "quotient", "root", "log", "log1p", "exp", "expm1")
SWAPPED_NAMES = {
    "raised": "lowered",
    "lowered": "raised",
    "round_up": "abs",
    "max": "min",
    "min": "max",
    **{f"{name}_up": f"{name}_down" for name in PRIMITIVES},
    **{f"{name}_down": f"{name}_up" for name in PRIMITIVES},
}
SWAPPED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


def mutants(source, tree, everywhere):
    """Yield (node, what is changed, function that changes it) for every way to break a source."""
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not hasattr(node, "lineno") or isinstance(node, ast.Expr):
            continue
        whole = " ".join(line.split("#")[0] for line in lines[node.lineno - 1 : node.end_lineno])
        if everywhere or ROUNDING.search(whole):
            for what, change in changes(node, everywhere):
                yield node, f"{lines[node.lineno - 1].strip()[:90]}   [{what}]", change


def changes(node, everywhere):
    """Yield descriptions of single changes to a node, and functions that make them."""
    turned = (ast.Add, ast.Sub, ast.Mult, ast.Div) if everywhere else (ast.Add, ast.Sub)
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, turned):
        other = SWAPPED[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", _setter("op", other)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in SWAPPED_NAMES and isinstance(node.func, ast.Name):
            yield f"{name} -> {SWAPPED_NAMES[name]}", lambda n: _rename(n, SWAPPED_NAMES[name])
        if name == "nextafter":
            yield "nextafter the other way", _next_the_other_way
        if name == "directed":
            yield "directed the other way", lambda n: n.args.__setitem__(2, _not(n.args[2]))
    if isinstance(node, ast.Name) and node.id in UNITS and isinstance(node.ctx, ast.Load):
        yield f"{node.id} -> 0", lambda n: setattr(n, "id", "_nothing_")
    if not everywhere:
        return
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        other = SWAPPED[type(node.ops[0])]
        yield (
            f"{type(node.ops[0]).__name__} -> {other.__name__}",
            lambda n: n.ops.__setitem__(0, other()),
        )
    if isinstance(node, ast.BoolOp | ast.UnaryOp) and type(node.op) in SWAPPED:
        other = SWAPPED[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", _setter("op", other)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} -> {node.value + 1}", lambda n: setattr(n, "value", n.value + 1)
    if isinstance(node, ast.IfExp):
        yield "branches swapped", _swap_branches


def _setter(field, kind):
    return lambda node: setattr(node, field, kind())


def _rename(call, name):
    call.func = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    if name == "abs":
        call.args = call.args[:1]


def _next_the_other_way(call):
    """Turn nextafter(x, end) into nextafter(x, x + x - nextafter(x, end))."""
    number, end = call.args
    twice = ast.BinOp(number, ast.Add(), number)
    call.args = [number, ast.BinOp(twice, ast.Sub(), ast.Call(call.func, [number, end], []))]


def _not(node):
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _swap_branches(node):
    node.body, node.orelse = node.orelse, node.body
