"""Records through fp.release, against plain reading and writing.

Every kind of table holds the same records of four categorical columns (32 values). Beside it stands
the time of pandas or NumPy to read the table and write it again, without any mechanism.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import fastpriv as fp
import instances
from contenders import ours, sizes, yardstick

DOMAIN = {
    "class": ["1st", "2nd", "3rd", "Crew"],
    "sex": ["Male", "Female"],
    "age": ["Child", "Adult"],
    "survived": ["No", "Yes"],
}
SIZES = [len(values) for values in DOMAIN.values()]


def tables(codes, folder):
    """(name, table, options, the same without a mechanism), for every kind of table."""
    frame = pd.DataFrame(
        {
            name: np.array(values, dtype=object)[codes[:, j]]
            for j, (name, values) in enumerate(DOMAIN.items())
        }
    )
    kinds = frame.astype("category")
    text, parquet = folder / "in.csv", folder / "in.parquet"
    frame.to_csv(text, index=False)
    frame.to_parquet(parquet)
    out = folder / "out.csv", folder / "out.parquet"
    return [
        ("codes", codes, {"domain": SIZES}, codes.copy),
        ("DataFrame of categories", kinds, {"domain": DOMAIN}, partial(kinds.copy, deep=True)),
        ("DataFrame of text", frame, {"domain": DOMAIN}, partial(frame.copy, deep=True)),
        (
            "CSV file",
            text,
            {"domain": DOMAIN, "out": fp.ReleaseFile(out[0], overwrite=True)},
            lambda: pd.read_csv(text).to_csv(out[0], index=False),
        ),
        (
            "Parquet file",
            parquet,
            {"domain": DOMAIN, "out": fp.ReleaseFile(out[1], overwrite=True)},
            lambda: pd.read_parquet(parquet).to_parquet(out[1]),
        ),
    ]


KINDS = ("codes", "DataFrame of categories", "DataFrame of text", "CSV file", "Parquet file")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", sizes(100_000, 1_000_000))
def test_release(versus, tmp_path, count, kind):
    """Release whole records and columns, and estimate."""
    codes = instances.codes(count, SIZES)
    name, table, options, plain = tables(codes, tmp_path)[KINDS.index(kind)]
    send = partial(fp.release, table, epsilon=1.0, **options)
    instance = f"{count:,} records, {name}"
    versus(
        "release",
        instance,
        ours(send, items=count),
        yardstick("read and write", plain, count),
        seed=0,
        unit="record",
        headline=name == "CSV file" and count == 1_000_000,
    )
    by_column = ours(partial(send, per_column=True), items=count)
    versus("release by column", instance, by_column, seed=0, unit="record")
    estimate = ours(partial(fp.estimate_frequencies, send()), items=count)
    versus("estimate frequencies", instance, estimate, seed=0, unit="record")
