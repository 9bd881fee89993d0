"""CPU time of starting: kernels by themselves, or first answers of a wheel in fresh environments.

    python benchmarks/cold_start.py                    compile all kernels, then an audit
    python benchmarks/cold_start.py entropy            compile some kernels
    python benchmarks/cold_start.py --wheels           build both wheels, install, ask, and compare

Without ``--wheels`` nothing is read from a cache or written to one. Times are CPU seconds of the
process and those it started. Much other work on the machine makes them up to twice as long.
"""

import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AUDIT = "fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])"
QUESTIONS = {
    "dp_level of a 2 x 2 matrix": "fp.dp_level([[0.9, 0.1], [0.2, 0.8]])",
    "audit of a 2 x 2 matrix": AUDIT,
    "the README's Python example": "fp.audit([[0.80, 0.15, 0.05], [0.10, 0.80, 0.10], "
    "[0.05, 0.15, 0.80]], prior=[0.7, 0.2, 0.1])",
    "DP-SGD epsilon": "step = fp.accounting.PrivacyProfile.gaussian(1.0, 0.01)\n"
    "step.self_compose(1000).epsilon(1e-5)",
    "ledger spend": "fp.accounting.Ledger({'dp': 1.0}).spend(fp.HammingChannel(3, 2, 0.5))",
}
README = ["audit", "randomised-response:n=3,epsilon=1", "--prior", "iid:p=0.7,0.3,n=3"]
#: Prints how many kernels numba compiled.
COUNT = """
import sys
declare = sys.modules.get("fastpriv.kernels.declare")
kernels = declare.KERNELS.values() if declare else ()
print("compiled", sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
OTHERS = {
    "import numpy": "import numpy",
    "import numba": "import numba",
    "dp-accounting, DP-SGD epsilon": """
import dp_accounting as d
event = d.PoissonSampledDpEvent(0.01, d.GaussianDpEvent(1.0))
accountant = d.pld.PLDAccountant()
accountant.compose(event, 1000).get_epsilon(1e-5)
""",
    "qif, capacity": """
import numpy as np, qif
qif.measure.shannon.add_capacity(np.array([[0.9, 0.1], [0.2, 0.8]]), 1e-9, 1e-9)
""",
}


def without_cache():
    """Compile everything in this process."""
    from fastpriv.kernels.cache import KernelCache

    KernelCache.load_overload = lambda cache, sig, context: context.refresh()
    KernelCache.save_overload = lambda cache, sig, data: None


def kernel_seconds(names):
    """Return the CPU seconds of each kernel, all its types together."""
    from fastpriv.kernels import KERNELS

    without_cache()
    KERNELS["any_below"].compile(KERNELS["any_below"].declared[0])  # numba's own start
    seconds = {}
    for name in names or KERNELS:
        start = time.process_time()
        for types in KERNELS[name].declared:
            KERNELS[name].compile(types)
        seconds[name] = time.process_time() - start
    return seconds


def audit_seconds():
    """Return the CPU seconds of the first audit, and the kernels it compiled."""
    import fastpriv as fp
    from fastpriv.kernels.declare import KERNELS

    without_cache()
    start = time.process_time()
    fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])
    seconds = time.process_time() - start
    return seconds, [name for name, kernel in KERNELS.items() if kernel.stats.cache_misses]


def print_kernels(names):
    """Print the table of kernels, most costly first."""
    os.environ["FASTPRIV_NATIVE"] = "1"
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        seconds = pool.apply(kernel_seconds, (names,))
        for name, each in sorted(seconds.items(), key=lambda pair: -pair[1]):
            print(f"{each:8.2f} s  {name}")
        print(f"{sum(seconds.values()):8.2f} s  together")
        if not names:
            first, used = pool.apply(audit_seconds)
            print(f"{first:8.2f} s  first audit of a 2 x 2 channel, {len(used)} kernels")


def run(command, **environment):
    """Run a command; return its CPU seconds, its largest memory in MB, and what it printed."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**clean, **environment},
            cwd=tempfile.gettempdir(),
        )
        _, status, used = os.wait4(process.pid, 0)
        out.seek(0)
        text = out.read().decode()
    if status:
        raise RuntimeError(f"{command} failed:\n{text}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text


def ask(bin_folder):
    """Return a cell for each question: CPU seconds, kernels compiled, MB."""
    cells = {}
    for title, code in QUESTIONS.items():
        whole = f"import fastpriv as fp\n{code}\n{COUNT}"
        seconds, memory, text = run([bin_folder / "python", "-c", whole])
        count = text.split("compiled ")[-1].strip()
        cells[title] = f"{seconds:.2f} s, {count} compiled, {memory:.0f} MB"
    seconds, memory, _ = run([bin_folder / "fastpriv", *README])
    cells["the README's command"] = f"{seconds:.2f} s, {memory:.0f} MB"
    seconds, memory, _ = run([bin_folder / "fastpriv", "--help"])
    cells["fastpriv --help"] = f"{seconds:.2f} s, {memory:.0f} MB"
    return cells


def environment(wheel, folder):
    """Install a wheel in a fresh environment; return its programs and the CPU seconds."""
    made, _, _ = run([sys.executable, "-m", "venv", folder])
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
    seconds, _, _ = run(pip)
    return folder / "bin", f"{made + seconds:.1f} s, {wheel.stat().st_size / 1e6:.1f} MB wheel"


def revision():
    """Return the short name of the checkout's commit, "unknown" outside of one."""
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def print_wheels():
    """Build both wheels, use them in fresh environments, and print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tool = [sys.executable, ROOT / "tools" / "compiled_wheel.py", "--out", folder / "compiled"]
        built, _, _ = run(tool)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        run([*pip, "-w", folder / "plain", ROOT])
        columns = {}
        for kind in ("compiled", "plain"):
            (wheel,) = (folder / kind).glob("*.whl")
            programs, cost = environment(wheel, folder / f"{kind}-environment")
            columns[f"{kind} wheel"] = {"install": cost, **ask(programs)}
            columns[f"{kind} wheel, second run"] = {"install": "", **ask(programs)}
        seconds, _, _ = run([programs / "fastpriv", "warm-up"])
        columns["plain wheel, after warm-up"] = {"install": f"{seconds:.1f} s", **ask(programs)}
    print(f"{time.strftime('%Y-%m-%d')}, revision {revision()}, Python {platform.python_version()}")
    print(f"building the compiled wheel: {built:.0f} s\n")
    print("| |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for row in next(iter(columns.values())):
        print(f"| {row} |", " | ".join(cells[row] for cells in columns.values()), "|")
    print()
    for title, code in OTHERS.items():
        try:
            seconds, memory, _ = run([sys.executable, "-c", code])
        except RuntimeError as error:
            print(f"{title}: {str(error).strip().splitlines()[-1]}")
        else:
            print(f"{title}: {seconds:.2f} s, {memory:.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:] == ["--wheels"]:
        print_wheels()
    else:
        print_kernels(sys.argv[1:])
