"""Build a wheel that compiles nothing: every kernel for each declared type, as machine code.

    python tools/compiled_wheel.py --out dist
    python tools/compiled_wheel.py --out dist --jobs 2

Needs fastpriv's dependencies, setuptools and a C compiler. Numba compiles each kernel for a
baseline (x86-64-v3 and x86-64-v2 on x86-64, the lowest processor elsewhere); LLVM writes objects
that may stand anywhere in memory; C functions with numpy's API unpack the arguments; the linker
makes one extension module for each baseline. The modules call neither numba nor llvmlite. The wheel
is tagged for this Python and platform.
"""

import argparse
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Baselines of a processor: the module's ending, LLVM's name and the C compiler's.
BASELINES = {
    "x86_64": [("v3", "x86-64-v3"), ("v2", "x86-64-v2")],
    "AMD64": [("v3", "x86-64-v3"), ("v2", "x86-64-v2")],
}
#: The oldest setuptools that reads pyproject.toml; an older one would fail after all is compiled.
SETUPTOOLS = 77
PARTS = ["fastpriv", "kernels", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"]

#: What every module begins with: memory of arrays, arguments, results and errors.
RUNTIME = Path(__file__).with_suffix(".c")
ENDING = r"""
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "%(module)s", "Kernels of fastpriv for %(cpu)s.", -1, NULL};

PyMODINIT_FUNC PyInit_%(module)s(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("%(cpu)s")) {
        PyErr_SetString(PyExc_ImportError, "the processor is no %(cpu)s");
        return NULL;
    }
#endif
    import_array();
    PyObject *module = PyModule_Create(&definition);
    PyObject *home = PyUnicode_FromString("fastpriv.kernels");
    if (module == NULL || home == NULL
        || PyModule_AddStringConstant(module, "stamp", "%(stamp)s") < 0)
        return NULL;
    for (PyMethodDef *each = methods; each->ml_name; each++) {
        PyObject *function = PyCFunction_NewEx(each, NULL, home);
        if (function == NULL || PyModule_AddObject(module, each->ml_name, function) < 0)
            return NULL;
    }
    Py_DECREF(home);
    return module;
}
"""
SCALARS = {"float64": "double", "int64": "int64_t", "uint64": "uint64_t", "bool": "uint8_t"}
BOXES = {
    "float64": "PyFloat_FromDouble({})",
    "int64": "PyLong_FromLongLong({})",
    "uint64": "PyLong_FromUnsignedLongLong({})",
    "bool": "PyBool_FromLong({})",
}


class Form:
    """One compiled form of a kernel, as C sees it. Types are pairs (dimensions, name)."""

    def __init__(self, symbol, arguments, result):
        self.symbol, self.arguments, self.result = symbol, arguments, result

    def prototype(self):
        """Return the declaration of the machine code: result, error and flattened arguments."""
        kinds = [f"TYPES({n})" if n else SCALARS[name] for n, name in self.arguments]
        return f"extern int {self.symbol}(void *, void **, {', '.join(kinds)});"

    def test(self):
        """Return the condition under which arguments have the types of this form."""
        tests = [
            f"is_array(given[{i}], {n}, NPY_{name.upper()})" if n else f"is_{name}(given[{i}])"
            for i, (n, name) in enumerate(self.arguments)
        ]
        return " && ".join([f"count == {len(tests)}", *tests])

    def call(self):
        """Return the statements that call it and return what it returned."""
        given = [
            f"GIVE{n}(given[{i}])" if n else f"TO_{name}(given[{i}])"
            for i, (n, name) in enumerate(self.arguments)
        ]
        scalars = [
            f"{SCALARS[name]} a{i} = {give};"
            for i, (give, (n, name)) in enumerate(zip(given, self.arguments, strict=True))
            if not n
        ]
        passed = [
            give if n else f"a{i}"
            for i, (give, (n, _)) in enumerate(zip(given, self.arguments, strict=True))
        ]
        fields = [f"Array{n} r{i};" if n else f"{SCALARS[name]} r{i};"
                  for i, (n, name) in enumerate(self.result or ())]  # fmt: skip
        return f"""
        struct {{ {" ".join(fields) or "void *r0;"} }} result;
        void *error = NULL;
        {" ".join(scalars)}
        int status;
        Py_BEGIN_ALLOW_THREADS
        status = {self.symbol}(&result, &error, {", ".join(passed)});
        Py_END_ALLOW_THREADS
        if (status)
            return failed(status, error);
        {self._box()}"""

    def _box(self):
        if self.result is None:
            return "Py_RETURN_NONE;"
        values = []
        for i, (n, name) in enumerate(self.result):
            field = f"result.r{i}"
            array = (
                f"from_array({n}, NPY_{name.upper()}, {field}.memory, {field}.data, "
                f"{field}.shape, {field}.strides)"
            )
            values.append(array if n else BOXES[name].format(field))
        if not self.is_tuple:
            return f"return {values[0]};"
        return f'return Py_BuildValue("({"N" * len(values)})", {", ".join(values)});'

    is_tuple = False


def described(kind):
    """Return the dimensions and the name of a numba type."""
    from numba import types

    if isinstance(kind, types.Array):
        return kind.ndim, str(kind.dtype)
    return 0, {"boolean": "bool"}.get(str(kind), str(kind))


def compile_kernel(task):
    """Compile a kernel for all its types; write objects for each processor, return the forms.

    Numba optimises for the first processor. Its code is valid for the others too: LLVM splits
    vectors that are too wide for them, and fuses no product with a sum where they cannot.
    """
    name, folders = task
    import llvmlite.binding as llvm
    from numba import types

    from fastpriv.kernels import loader
    from fastpriv.kernels.dispatchers import Kernel

    declared = loader.declared(name)
    kernel = Kernel(declared.py_func, {**declared.targetoptions, "no_cpython_wrapper": True})
    kernel.declared = declared.declared
    kernel._cache.disable()
    target = llvm.Target.from_default_triple()
    options = {"features": "", "opt": 3, "reloc": "pic", "codemodel": "default"}
    machines = {folder: target.create_target_machine(cpu=cpu, **options) for folder, cpu in folders}
    forms = []
    for which, signature in enumerate(kernel.declared):
        kernel.compile(signature)
        compiled = kernel.overloads[signature]
        module = llvm.parse_assembly(str(compiled.library._final_module))
        symbol = f"kernel_{name}_{which}"
        for function in module.functions:
            if function.name == compiled.fndesc.llvm_func_name:
                function.name = symbol
            elif not function.is_declaration:
                function.linkage = "internal"
        for variable in module.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        for folder, machine in machines.items():
            Path(folder, f"{symbol}.o").write_bytes(machine.emit_object(module))
        result = compiled.signature.return_type
        parts = result.types if isinstance(result, types.BaseTuple) else (result,)
        boxes = None if result is types.none else [described(each) for each in parts]
        form = Form(symbol, [described(each) for each in signature], boxes)
        form.is_tuple = isinstance(result, types.BaseTuple)
        forms.append(form)
    return name, forms


def source_of(kernels, module, cpu, stamp):
    """Return the C source of an extension module."""
    text = [RUNTIME.read_text()]
    for name, forms in kernels:
        text += [form.prototype() for form in forms]
        text.append(f"static PyObject *py_{name}(PyObject *self, PyObject *const *given, ")
        text.append("                            Py_ssize_t count)\n{")
        text += [f"    if ({form.test()}) {{{form.call()}\n    }}" for form in forms]
        text.append(f'    return undeclared("{name}", given, count);\n}}\n')
    entries = [
        f'    {{"{name}", (PyCFunction)(void (*)(void))py_{name}, METH_FASTCALL, NULL}},'
        for name, _ in kernels
    ]
    text += ["static PyMethodDef methods[] = {", *entries, "    {NULL, NULL, 0, NULL}};"]
    text.append(ENDING % {"module": module, "cpu": cpu, "stamp": stamp})
    return "\n".join(text)


def build_modules(baselines, folder, jobs):
    """Compile all kernels for each processor; return the extension modules."""
    from fastpriv.kernels import loader

    folders = [(str(folder / ending), cpu) for ending, cpu in baselines]
    for each, _ in folders:
        Path(each).mkdir()
    os.environ.update(NUMBA_CPU_NAME=baselines[0][1], NUMBA_CPU_FEATURES="")
    os.environ.update(FASTPRIV_NATIVE="1", FASTPRIV_QUIET="1")
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        kernels = list(pool.map(compile_kernel, [(name, folders) for name in loader.FILES]))
    return [link(kernels, folder, ending, cpu, loader.STAMP) for ending, cpu in baselines]


def link(kernels, folder, ending, cpu, stamp):
    """Link the objects of a processor with their C functions; return the extension module."""
    import numpy as np

    module = f"compiled_{ending}"
    source = folder / f"{module}.c"
    source.write_text(source_of(kernels, module, cpu, stamp))
    built = folder / (module + sysconfig.get_config_var("EXT_SUFFIX"))
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    include = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    options = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-Wl,-s"]
    objects = sorted((folder / ending).glob("*.o"))
    command = [
        *compiler,
        "-O2",
        "-DNDEBUG",
        "-fPIC",
        "-shared",
        *include,
        source,
        *objects,
        "-o",
        built,
    ]
    subprocess.run([*map(str, command), *options, "-lm"], check=True)
    return built


def platform_tag(modules):
    """Return the platform of a wheel: on Linux the oldest glibc that has all symbols."""
    plain = re.sub(r"[.-]", "_", sysconfig.get_platform())
    if not plain.startswith("linux") or not shutil.which("objdump"):
        return plain
    text = "".join(
        subprocess.run(["objdump", "-T", module], capture_output=True, text=True, check=True).stdout
        for module in modules
    )
    minors = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", text)]
    return plain.replace("linux", f"manylinux_2_{max(minors, default=17)}", 1) if minors else plain


def copy_sources(tree):
    """Copy what a wheel is built from: a change meanwhile does not reach it."""
    tree.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "compiled_*")
            shutil.copytree(ROOT / part, tree / part, ignore=ignore)
        else:
            shutil.copy(ROOT / part, tree)


def build_wheel(modules, tree, out):
    """Build the wheel from the copied sources, with the modules beside the kernels."""
    for module in modules:
        shutil.copy(module, tree / "kernels")
    code = (
        "import sys, setuptools.build_meta as build\n"
        "options = {'--build-option': ['--plat-name', sys.argv[2]]}\n"
        "print(build.build_wheel(sys.argv[1], options))"
    )
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", code, str(out.resolve()), platform_tag(modules)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return out / done.stdout.split()[-1]


def main():
    """Build the wheel and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the wheel"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that compile")
    given = parser.parse_args()
    found = version("setuptools")
    if int(found.split(".")[0]) < SETUPTOOLS:
        need = f"setuptools>={SETUPTOOLS}"
        parser.error(f"setuptools must be {SETUPTOOLS} or newer; got {found}. pip install '{need}'")
    baselines = BASELINES.get(platform.machine(), [("baseline", "generic")])
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), Path(name, "tree")
        copy_sources(tree)
        sys.path.insert(0, str(tree))
        os.environ["PYTHONPATH"] = str(tree)
        modules = build_modules(baselines, folder, given.jobs)
        wheel = build_wheel(modules, tree, given.out)
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
