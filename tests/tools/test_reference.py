"""The pages of the API read well without being built, and are up to date."""

import importlib.util
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)

PAGE = """# Sums

```{eval-rst}
.. reference:: math

   fsum
   hypot
```
"""


def test_pages_are_up_to_date():
    pytest.importorskip("dp_accounting")
    pytest.importorskip("opendp")
    names = [page.name for page in reference.stale()]
    assert not names, f"run python tools/reference.py for {', '.join(names)}"


def test_names_come_before_the_reference_and_are_written_once():
    once = reference.rewritten(PAGE)
    assert once.index("- `fsum(") < once.index("```{eval-rst}")
    assert once.count("- `") == 2
    assert reference.rewritten(once) == once
    assert reference.rewritten(once.replace("fsum", "prod")).count("- `prod(") == 1


def test_signatures_have_names_and_defaults_only():
    def call(first: int, *, second: float = 1.0, _hidden: int = 3) -> str:
        """Do something (or not) with :func:`fastpriv.dp_level`. Say no more.

        Ever.
        """

    assert reference.signature(call) == "(first, *, second=1.0)"
    assert reference.signature(ValueError) == ""
    assert reference.signature(inspect) == ""
    assert reference.first_sentence(call) == "Do something (or not) with `fastpriv.dp_level`."
