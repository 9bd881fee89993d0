"""Rules that keep the cache honest and two threads from aborting the process."""

import ast
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import fastpriv.kernels as kernels
from fastpriv.kernels import cache, declare, dispatchers

FOLDER = Path(kernels.__file__).parent
FILES = sorted(
    path
    for path in FOLDER.glob("*.py")
    if path.stem not in ("__init__", "cache", "declare", "dispatchers")
)
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@each_file
def test_a_kernel_file_imports_only_files_of_its_folder(path):
    # The cache is stamped by the contents of this folder: code from elsewhere would go unnoticed.
    allowed = re.compile(r"(math|numba|numpy|typing)$")
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if node.level == 1 else [node.module]
        assert all(map(allowed.match, names)), names


@each_file
def test_every_function_is_a_kernel_or_a_helper(path):
    # No parallel=True, and of fastmath only what keeps infinities.
    flags = r"(error_model='numpy')?(, )?(fastmath=\{'contract'(, 'reassoc')?\})?"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            (decorator,) = map(ast.unparse, node.decorator_list)
            assert re.fullmatch(rf"(kernel|helper)\({flags}\)", decorator), (node.name, decorator)


def test_every_kernel_stands_in_the_package():
    for name, kernel in kernels.KERNELS.items():
        assert getattr(kernels, name) is kernel


def test_the_stamp_covers_every_file(tmp_path, monkeypatch):
    for path in FOLDER.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(cache, "HERE", tmp_path)
    assert cache._stamp() == cache.STAMP  # contents count, dates and places do not
    stamps = {cache.STAMP}
    for path in tmp_path.glob("*.py"):
        source = path.read_bytes()
        path.write_bytes(source + b"\n")
        stamps.add(cache._stamp())
        path.write_bytes(source)
    assert len(stamps) == 1 + len(list(tmp_path.glob("*.py")))


def test_annotations_are_the_types_of_a_kernel():
    types = kernels.entropy_range.declared
    assert [list(map(str, each)) for each in types] == [["array(float64, 1d, C)", "int64", "int64"]]
    codes = [str(each[0].dtype) for each in kernels.look_up.declared]
    assert codes == ["uint8", "uint16", "uint32", "uint64"]
    assert all(each[0] == each[-1] for each in kernels.look_up.declared)
    with pytest.raises(TypeError, match="argument x of kernel untyped needs a declared type"):

        @declare.kernel()
        def untyped(x):
            return x


def test_a_call_with_undeclared_types_warns_and_answers():
    values = np.array([1.0, -2.0], dtype=np.float32)
    with pytest.warns(dispatchers.UndeclaredTypes, match="kernel any_below is not declared for"):
        assert kernels.any_below(values, np.ones(2), 1.0)


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(kernels.entropy)) is kernels.entropy
