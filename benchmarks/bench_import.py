"""Import and first answer in fresh interpreters, beside ``import numpy``.

Times include starting Python, which is shown as well.
"""

import subprocess
import sys
from functools import partial

from _bench import ours, run, yardstick

CASES = {
    "import": "import fastpriv",
    "import and first prior": "import fastpriv as fp; fp.Uniform(3, 2).epsilon_x()",
    "import and first level": "import fastpriv as fp; fp.dp_level([[0.5, 0.5], [0.4, 0.6]])",
}


def interpreter(code):
    """Run code in an interpreter of its own."""
    subprocess.run([sys.executable, "-c", code], check=True)


def main(bench):
    """Every case beside numpy and an empty program."""
    bench.least *= 8  # an interpreter starts in 20 ms
    for name, code in CASES.items():
        bench.compare(
            "start of a program",
            name,
            ours(partial(interpreter, code)),
            yardstick("import numpy", partial(interpreter, "import numpy")),
            yardstick("python alone", partial(interpreter, "pass")),
        )


if __name__ == "__main__":
    run(main)
