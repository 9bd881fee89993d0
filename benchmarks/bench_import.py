"""Import and first answer in fresh interpreters, beside ``import numpy``.

Times include starting Python, which is shown as well.
"""

import subprocess
import sys
from functools import partial

import pytest

from contenders import ours, yardstick

CASES = {
    "import": "import fastpriv",
    "import and first prior": "import fastpriv as fp; fp.Uniform(3, 2).epsilon_x()",
    "import and first level": "import fastpriv as fp; fp.dp_level([[0.5, 0.5], [0.4, 0.6]])",
}


def interpreter(code):
    """Run code in an interpreter of its own."""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.benchmark(min_rounds=8)  # starting an interpreter is noisy
@pytest.mark.parametrize("name", CASES)
def test_start(versus, name):
    """Every case beside numpy and an empty program."""
    versus(
        "start of a program",
        name,
        ours(partial(interpreter, CASES[name])),
        yardstick("import numpy", partial(interpreter, "import numpy")),
        yardstick("python alone", partial(interpreter, "pass")),
    )
