"""Run every benchmark against the peers that are installed, and write one table.

``python benchmarks/run.py [--quick] [NAME ...] [--json results.json] [--write]``. Each benchmark
runs in a process of its own with limits of memory and time; what it measured before it was stopped
is kept. ``--write`` puts the short table between the markers in README.md and the whole page into
docs/benchmarks.md; with ``--from results.json`` the results of an earlier run. Peers come with
``pip install 'fastpriv[peers]'``; missing ones are named.
"""

import argparse
import ast
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np

import fastpriv as fp
from _bench import OURS, PEERS, Record
from _tables import conditions, lost_list, page, summary

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
START, END = "<!-- benchmarks:start -->", "<!-- benchmarks:end -->"
#: Address space of a benchmark, in bytes.
MEMORY = 8 << 30
#: Whose versions are told, beside ours and those of the peers.
BASIS = ("numpy", "scipy", "numba", "highspy", "clarabel", "pandas")


def scripts():
    """The benchmarks by name."""
    return {path.stem.removeprefix("bench_"): path for path in sorted(FOLDER.glob("bench_*.py"))}


def about(path):
    """What a script says about itself."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def version(name):
    """Installed version, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def load():
    """Average number of running processes in the last minute."""
    return round(os.getloadavg()[0], 2)


def cpu():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine():
    """Where this runs."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "os": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "python": platform.python_version(),
        "blas": f"{blas['name']} {blas['version']}",
        "load_before": load(),
        "load_after": None,
    }


def revision():
    """Git's name of what is measured, or None."""
    try:
        name = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return name.stdout.strip()


def limit_memory():
    """Let a benchmark that asks for too much memory fail, instead of the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def measure(path, quick, limit):
    """Run one script; return how it ended, its seconds and the records it wrote."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        kept, told = Path(folder) / "records", Path(folder) / "errors"
        command = [sys.executable, str(path), "--records", str(kept)]
        with told.open("w") as errors:
            child = subprocess.Popen(
                command + ["--quick"] * quick,
                stderr=errors,
                preexec_fn=limit_memory,
                start_new_session=True,
            )
            try:
                status = ending(child.wait(limit), told)
            except subprocess.TimeoutExpired:
                status = f"stopped after {limit:g} s"
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        lines = kept.read_text().splitlines(keepends=True) if kept.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return status, time.perf_counter() - start, records


def ending(code, told):
    """How a script ended, with its last words where it failed."""
    if code == 0:
        return "ok"
    last = (told.read_text().strip().splitlines() or [""])[-1]
    return f"failed with code {code}: {last[:200]}"


def run_all(chosen, quick, limit):
    """Run the chosen scripts one after another."""
    results = {
        "schema": 1,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": None,
        "quick": quick,
        "revision": revision(),
        "machine": machine(),
        "versions": {name: version(name) for name in (OURS, *BASIS, *PEERS)},
        "benchmarks": [],
        "records": [],
    }
    fp.warm_up()  # compiles what is not compiled yet, which no limit should hit
    begun = time.perf_counter()
    for number, (name, path) in enumerate(chosen.items(), 1):
        print(f"[{number}/{len(chosen)}] {name}", flush=True)
        status, seconds, records = measure(path, quick, limit)
        results["records"] += records
        results["benchmarks"].append(
            {"name": name, "status": status, "seconds": round(seconds, 1), "about": about(path)}
        )
        print(f"[{number}/{len(chosen)}] {name}: {status}, {seconds:.0f} s\n", flush=True)
    results["machine"]["load_after"] = load()
    results["seconds"] = round(time.perf_counter() - begun, 1)
    return results


def between_markers(text, new):
    """Replace what stands between the markers."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"README.md has no {START} ... {END} to write between")
    return f"{before}{START}\n{new}{END}{after}"


def write(results, root=ROOT):
    """Put the tables into README and documentation."""
    records = [Record(**record) for record in results["records"]]
    readme = root / "README.md"
    readme.write_text(between_markers(readme.read_text(), summary(results, records)))
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs" / "benchmarks.md").write_text(page(results, records))


def main():
    """Run from the command line."""
    known = scripts()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, within 3 minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument("--write", action="store_true", help="update README.md and docs")
    parser.add_argument("--from", type=Path, dest="kept", metavar="FILE", help="earlier results")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="for each benchmark")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    if given.write and given.names:
        parser.error("--write needs all benchmarks: leave out the names")
    if given.kept:
        results = json.loads(given.kept.read_text())
    else:
        chosen = {name: known[name] for name in known if name in given.names or not given.names}
        results = run_all(chosen, given.quick, given.limit or (60.0 if given.quick else 300.0))
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    records = [Record(**record) for record in results["records"]]
    print(conditions(results), "Where we lose:", lost_list(records), sep="\n")
    if given.write:
        write(results)
    return 0 if all(b["status"] == "ok" for b in results["benchmarks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
