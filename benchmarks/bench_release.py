"""Millions of records per second through fp.release, against plain reading and writing.

Run ``python benchmarks/bench_release.py [records]``. Every kind of table holds the same records of
four categorical columns (32 values). The last column is the time of pandas or NumPy to read the
table and write it again, without any mechanism, over ours: above 1 means a sanitised copy is made
faster than a plain one.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import fastpriv as fp

DOMAIN = {
    "class": ["1st", "2nd", "3rd", "Crew"],
    "sex": ["Male", "Female"],
    "age": ["Child", "Adult"],
    "survived": ["No", "Yes"],
}
SIZES = [len(values) for values in DOMAIN.values()]


def seconds(call, repeats=3):
    """Least wall time of a few calls."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


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
        ("DataFrame, categories", kinds, {"domain": DOMAIN}, lambda: kinds.copy(deep=True)),
        ("DataFrame, text", frame, {"domain": DOMAIN}, lambda: frame.copy(deep=True)),
        (
            "CSV file",
            text,
            {"domain": DOMAIN, "out": out[0], "overwrite": True},
            lambda: pd.read_csv(text).to_csv(out[0], index=False),
        ),
        (
            "Parquet file",
            parquet,
            {"domain": DOMAIN, "out": out[1], "overwrite": True},
            lambda: pd.read_parquet(parquet).to_parquet(out[1]),
        ),
    ]


def main():
    """Print the table."""
    records = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000_000
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, m, records) for m in SIZES], axis=1).astype(np.uint8)
    print(f"{records:,} records, millions per second")
    print(f"{'table':<24}{'release':>10}{'by column':>11}{'estimate':>10}{'plain/ours':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name, table, options, plain in tables(codes, Path(folder)):
            fp.release(table, epsilon=1.0, **options)
            whole = seconds(lambda: fp.release(table, epsilon=1.0, **options))  # noqa: B023
            parts = seconds(
                lambda: fp.release(table, epsilon=1.0, per_column=True, **options)  # noqa: B023
            )
            released = fp.release(table, epsilon=1.0, **options)
            back = seconds(lambda: fp.estimate_frequencies(released))  # noqa: B023
            rates = "".join(f"{records / 1e6 / t:>{w}.1f}" for t, w in zip(
                (whole, parts, back), (10, 11, 10), strict=True
            ))  # fmt: skip
            print(f"{name:<24}{rates}{seconds(plain) / whole:>12.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
