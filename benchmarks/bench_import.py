"""Import time as a ratio to ``import numpy``, fresh interpreters, in one run.

Run ``python benchmarks/bench_import.py``.
"""

import subprocess
import sys
import time

CASES = {
    "nothing": "pass",
    "numpy": "import numpy",
    "fastpriv": "import fastpriv",
    "fastpriv, first prior": "import fastpriv as fp; fp.Uniform(3, 2).epsilon_x()",
    "fastpriv, first level": "import fastpriv as fp; fp.dp_level([[0.5, 0.5], [0.4, 0.6]])",
}


def seconds(code):
    """Wall time of one interpreter."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    best = dict.fromkeys(CASES, float("inf"))
    for _ in range(15):
        for name, code in CASES.items():
            best[name] = min(best[name], seconds(code))
    start = best["nothing"]
    for name, least in best.items():
        ratio = (least - start) / (best["numpy"] - start)
        print(f"{name:<24}{1e3 * (least - start):>8.1f} ms {ratio:>8.2f} x import numpy")
