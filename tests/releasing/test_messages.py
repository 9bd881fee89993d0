"""Whatever is given to a release or an estimate: one sentence of ours, and a short one."""

import numpy as np
import pytest

import fastpriv as fp

HUGE = 10**400
DOMAIN = {"a": ["x", "y"], "b": ["y", "z"]}
TABLE = [{"a": "x", "b": "y"}, {"a": "y", "b": "y"}] * 60
WIDE = {f"column {k} {'_' * 40}": "v" for k in range(300)}
ODD = [
    *(HUGE, -HUGE, -1, 2.5, float("nan"), float("inf"), True, b"x", object(), int),
    *("x" * 5000, ["y" * 3000] * 3, {"z" * 3000: ["w" * 4000]}, {"a": HUGE}, [HUGE, HUGE]),
    *(range(10**30), {1: {2: 3}}, np.zeros((2, 2)), fp.HammingChannel(1, 2, 1.0), WIDE, [WIDE] * 3),
]
#: About two lines of a terminal, with names of up to 80 characters in them.
LONGEST = 240


def short(function, *given, **options):
    said = ""
    try:
        function(*given, **options)
    except fp.FastprivError as error:
        said = str(error)
    assert len(said) <= LONGEST


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{type(odd).__name__}")
def test_odd_arguments_get_a_short_sentence(odd):
    known = {"domain": DOMAIN, "epsilon": 3.0}
    names = ("epsilon", "distortion", "mechanism", "domain", "prior", "split", "per_column")
    for name in names:
        short(fp.preview_release, 100, **{**known, name: odd})
        short(fp.release, TABLE, **{**known, name: odd})
    for name in ("label", "resume"):
        ledger = fp.accounting.Ledger({"dp": 10.0})
        short(fp.release, TABLE, ledger=ledger, **known, **{name: odd})
    if not isinstance(odd, str):
        short(fp.release, TABLE, **known, accept=odd)
        for name, out in (("out", odd), ("report", fp.ReleaseFile("out.csv", odd))):
            with pytest.raises(fp.InvalidInput, match=f"{name} must be the path of a file"):
                fp.release("in.csv", **known, out=out)
    released = fp.release(TABLE, **known)
    short(fp.estimate_frequencies, odd, released.report)
    short(fp.estimate_frequencies, released.table, odd, domain=DOMAIN)
    for name in ("domain", "columns", "confidence", "simultaneous", "method"):
        short(fp.estimate_frequencies, released, **{name: odd})
    short(fp.release, odd, **known)
    short(fp.release, odd, epsilon=1.0)
    short(fp.ReleaseReport.from_json, odd)


def test_wide_tables_get_a_short_sentence():
    declared = {name: ["v", "w"] for name in WIDE}
    table = [WIDE] * 150
    for options in (
        {"domain": {"a": [1]}, "epsilon": 1.0},
        {"domain": declared, "epsilon": 0.1},
        {"domain": declared, "epsilon": 1e9, "split": "record"},
        {"domain": {**declared, "z": [1]}, "epsilon": 1.0},
        {"domain": dict(list(declared.items())[:9]), "epsilon": 1.0},
        {"domain": declared, "mechanism": fp.HammingChannel(2, 5, 1.0)},
        {"epsilon": 1.0},
    ):
        with pytest.raises(fp.FastprivError) as caught:
            fp.release(table, **options)
        assert len(str(caught.value)) <= LONGEST
    with pytest.raises(fp.InvalidInput, match="declare the values of each column"):
        fp.release(np.zeros((5, 0), dtype=int), epsilon=1.0)
