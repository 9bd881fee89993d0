"""Print the import graph in numbers: layers, cycles, and the largest pieces.

    python tools/house.py [CHECKOUT] [--edges]

Imports within functions count; imports under ``if TYPE_CHECKING`` do not. The order of the layers
is the import-linter contract in pyproject.toml. The exit code is 1 if an import goes up, if there
is a cycle, a private module at the root, or a module of the package that is imported by name.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "fastpriv"
#: The module that imports optional packages of others by their names.
_OPTIONAL = "fastpriv._core.extras"

Edges = dict[str, set[str]]


class House(NamedTuple):
    """The measured numbers of a checkout."""

    lines: dict[str, int]
    methods: dict[str, int]
    edges: Edges
    loose: list[str]
    upward: list[tuple[str, str]]
    cycles: list[list[str]]
    by_name: list[str]
    private: int

    @property
    def single(self) -> list[str]:
        """Modules that only one module of their folder imports."""
        importers: dict[str, set[str]] = {name: set() for name in self.edges}
        for name, targets in self.edges.items():
            for target in targets:
                importers[target].add(name)
        folder = {name: name.rpartition(".")[0] for name in self.edges}
        return sorted(
            name
            for name, users in importers.items()
            if len(users) == 1 and folder[next(iter(users))] == folder[name]
        )

    @property
    def faults(self) -> list[str]:
        """The broken rules, in words."""
        return [
            *(f"private at the root: {name}" for name in self.loose),
            *(f"upward: {a} -> {b}" for a, b in self.upward),
            *(f"cycle: {', '.join(cycle)}" for cycle in self.cycles),
            *(f"imports by name: {name}" for name in self.by_name),
        ]


def survey(root: Path) -> House:
    """Measure a checkout."""
    files = {
        _module(path, root): path
        for path in sorted((root / PACKAGE).rglob("*.py"))
        if "kernels" not in path.parts  # numba functions: they import one another and numpy only
    }
    trees = {name: ast.parse(path.read_text()) for name, path in files.items()}
    edges = {name: _imported(tree, name, files) for name, tree in trees.items()}
    order = layers((root / "pyproject.toml").read_text())
    return House(
        lines={name: path.read_text().count("\n") for name, path in files.items()},
        methods={cls: count for tree in trees.values() for cls, count in _classes(tree)},
        edges=edges,
        loose=[
            path.name
            for path in files.values()
            if path.parent == root / PACKAGE and re.match(r"_[^_]", path.name)
        ],
        upward=[
            (name, target)
            for name, targets in edges.items()
            for target in sorted(targets)
            if _rank(name, order) > _rank(target, order)
        ],
        cycles=cycles(edges),
        by_name=[
            name
            for name, tree in trees.items()
            if name != _OPTIONAL and any("import_module" in ast.dump(n) for n in _calls(tree))
        ],
        private=sum(_is_foreign(node) for tree in trees.values() for node in ast.walk(tree)),
    )


def _calls(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the functions that are called."""
    return (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))


def _is_foreign(node: ast.AST) -> bool:
    """Whether a private attribute of another object is read."""
    if not isinstance(node, ast.Attribute) or not re.match(r"_[^_]", node.attr):
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))


def layers(text: str) -> list[str]:
    """Return the layers in the order of the contract, the highest first."""
    block = re.findall(r"^layers = \[(.*?)^\]", text, re.S | re.M)[0]  # of the whole package
    return re.findall(r'"([^"]+)"', block)


def layer(module: str) -> str:
    """Return the layer of a module: the part after the name of the package."""
    return module.split(".")[1] if "." in module else ""


def _rank(module: str, order: list[str]) -> int:
    """Return the place of a module's layer; the package itself and ``__main__`` are highest."""
    return order.index(layer(module)) if layer(module) in order else -1


def _module(path: Path, root: Path) -> str:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _imported(tree: ast.Module, name: str, files: dict[str, Path]) -> set[str]:
    """Return the modules that a module imports, except its own folder and submodules."""
    package = name if files[name].name == "__init__.py" else name.rpartition(".")[0]
    targets = set[str]()
    for node in _runtime(tree):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            inside = {f"{base}.{alias.name}" for alias in node.names}
            targets |= (inside & files.keys()) | ({base} if inside - files.keys() else set())
    related = {name, *(t for t in targets if f"{name}.".startswith(f"{t}."))}
    return {t for t in targets & files.keys() if t not in related and not t.startswith(f"{name}.")}


def _runtime(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes except those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _runtime(child)


def _classes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield classes with their numbers of methods; overloads count once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = (n for n in node.body if isinstance(n, ast.FunctionDef))
            own = (
                m for m in methods if not any("overload" in ast.dump(d) for d in m.decorator_list)
            )
            yield node.name, sum(1 for _ in own)


def cycles(edges: Edges) -> list[list[str]]:
    """Return the sets of modules that import one another in a circle (Tarjan's algorithm)."""
    index, low = dict[str, int](), dict[str, int]()
    stack, circles = list[str](), list[list[str]]()

    def visit(v: str) -> None:
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            place = stack.index(v)
            circle = sorted(stack[place:])
            del stack[place:]
            if len(circle) > 1:
                circles.append(circle)

    sys.setrecursionlimit(10_000)
    for v in sorted(edges):
        if v not in index:
            visit(v)
    return circles


def report(house: House, order: list[str], with_edges: bool) -> str:
    """Return the numbers as text."""
    sizes = Counter(layer(name) for name in house.lines)
    below = {
        name: sorted(
            {layer(t) for m, ts in house.edges.items() if layer(m) == name for t in ts} - {name},
            key=order.index,
        )
        for name in order
        if sizes[name]
    }
    lines = [f"{'layer':<12} files  imports"] if with_edges else []
    if with_edges:
        lines += [f"{name:<12} {sizes[name]:>5}  {' '.join(ts)}" for name, ts in below.items()]
    longest = max(house.lines, key=lambda name: house.lines[name])
    crowded = max(house.methods, key=lambda name: house.methods[name])
    return "\n".join(
        [
            *lines,
            f"{len(house.lines)} files, {sum(house.lines.values())} lines, "
            f"{sum(map(len, house.edges.values()))} imports",
            f"cycles, function-level imports counted: {len(house.cycles)}",
            f"upward edges: {len(house.upward)}",
            f"private modules at the root: {len(house.loose)}",
            f"modules that only one neighbour imports: {len(house.single)}",
            f"private attributes of others: {house.private}",
            f"largest class: {crowded}, {house.methods[crowded]} methods",
            f"largest file: {longest}, {house.lines[longest]} lines",
            f"median file: {statistics.median(house.lines.values()):g} lines",
            *house.faults,
        ]
    )


def main() -> int:
    """Print the numbers of a checkout, and return whether a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--edges", action="store_true", help="also list which layer imports which")
    given = parser.parse_args()
    house = survey(given.checkout)
    order = layers((given.checkout / "pyproject.toml").read_text())
    print(report(house, order, given.edges))
    return 1 if house.faults else 0


if __name__ == "__main__":
    sys.exit(main())
