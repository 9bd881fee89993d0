"""Rules that keep numba's cache honest and two threads from aborting the process."""

import ast
import re
from pathlib import Path

import pytest

import fastpriv
import fastpriv.kernels as kernels

FOLDER = Path(kernels.__file__).parent
FILES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@each_file
def test_a_kernel_file_imports_nothing_of_ours(path):
    # Numba keys its cache by the kernel's own file: a helper changed elsewhere would go unnoticed.
    allowed = {"math", "numba", "numpy", "typing"}
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module]
        assert {name.split(".")[0] for name in names} <= allowed


@each_file
def test_every_function_spells_out_its_flags(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            (decorator,) = map(ast.unparse, node.decorator_list)
            flags = r"(, error_model='numpy')?(, fastmath=\{'contract'(, 'reassoc')?\})?"
            pattern = rf"njit\(nogil=True, cache=True{flags}\)"
            assert re.fullmatch(pattern, decorator), (node.name, decorator)


def test_every_kernel_is_typed_and_warmed_up():
    stub = (FOLDER / "__init__.pyi").read_text()
    typed = set(re.findall(r"^def (\w+)", stub, re.MULTILINE))
    assert typed == set(kernels.SIGNATURES)
    fastpriv.warm_up()
    for name, signatures in kernels.SIGNATURES.items():
        assert len(getattr(kernels, name).signatures) >= len(signatures) >= 1, name
