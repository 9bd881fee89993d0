"""Rules that keep the cache honest and two threads from aborting the process."""

import ast
import importlib
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import fastpriv.kernels as kernels
from fastpriv.kernels import declare, dispatchers, loader

FOLDER = Path(kernels.__file__).parent
FILES = sorted(
    path
    for path in FOLDER.glob("*.py")
    if path.stem not in ("__init__", "cache", "declare", "dispatchers", "loader", "plain")
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
    small, fastmath = (
        r"(small=(True|2 \* SHORT)|forceinline=True)?",
        r"(fastmath=\{'contract'(, 'reassoc')?\})?",
    )
    flags = rf"{small}(, )?(error_model='numpy')?(, )?{fastmath}"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            (decorator,) = map(ast.unparse, node.decorator_list)
            assert re.fullmatch(rf"(kernel|helper)\({flags}\)", decorator), (node.name, decorator)


def test_every_kernel_stands_in_the_package():
    declared = {name for path in FILES for name in vars(_module(path)) if name in declare.KERNELS}
    assert set(kernels.KERNELS) == declared == set(loader.FILES)
    for name, kernel in kernels.KERNELS.items():
        assert getattr(kernels, name) is kernel or loader.SHIPPED or name in loader.SMALL
        assert declare.KERNELS[name] is kernel
    assert set(loader.FILES) <= set(dir(kernels))
    with pytest.raises(AttributeError, match="has no attribute 'entrpy'"):
        kernels.entrpy  # noqa: B018


def _module(path):
    return importlib.import_module(f"fastpriv.kernels.{path.stem}")


def test_types_see_every_file_that_declares_kernels():
    listed = re.findall(r"^    from \.(\w+) import \*$", (FOLDER / "__init__.py").read_text(), re.M)
    assert listed == sorted(set(loader.FILES.values()))


def test_the_stamp_covers_every_file():
    assert set(loader.SOURCES) == {path.name for path in FOLDER.glob("*.py")}
    stamps = {loader.STAMP}
    for name, source in loader.SOURCES.items():
        stamps.add(loader.stamp_of({**loader.SOURCES, name: source + b"\n"}))
    assert len(stamps) == 1 + len(loader.SOURCES)


def test_annotations_are_the_types_of_a_kernel():
    types = kernels.KERNELS["entropy_range"].declared
    assert [list(map(str, each)) for each in types] == [["array(float64, 1d, C)", "int64", "int64"]]
    codes = [str(each[0].dtype) for each in kernels.KERNELS["look_up"].declared]
    assert codes == ["uint8", "uint16", "uint32", "uint64"]
    assert all(each[0] == each[-1] for each in kernels.KERNELS["look_up"].declared)
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
