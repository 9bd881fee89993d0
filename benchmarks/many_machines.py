"""Parquet files through ``fp.release``: by one process, and by the workers of a Dask cluster.

Run ``python benchmarks/many_machines.py [records] [workers] [folder]``; 5,000,000 records, two
workers and a temporary folder unless told. It writes the records as 16 Parquet files, releases the
folder in one process, releases it as a Dask frame to a new folder, and estimates from both. Every
time is that of a whole step, the cluster's start not counted. The two released tables are checked:
all records are there, and the estimates agree within six standard errors of their difference.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster

import fastpriv as fp

DOMAIN = {
    "sex": ["F", "M"],
    "age": list(range(0, 100, 5)),
    "region": ["north", "south", "east", "west"],
    "smokes": ["no", "yes"],
}
FILES = 16


def write(folder, records):
    """Write random records as Parquet files of equal size."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for k in range(FILES):
        n = records * (k + 1) // FILES - records * k // FILES
        columns = {}
        for name, values in DOMAIN.items():
            law = np.arange(1, len(values) + 1) / sum(range(1, len(values) + 1))
            columns[name] = pa.array(values).take(pa.array(rng.choice(len(values), n, p=law)))
        pq.write_table(pa.table(columns), folder / f"part.{k}.parquet")


def timed(name, records, task):
    """Run a task and print how long it took."""
    start = time.perf_counter()
    result = task()
    seconds = time.perf_counter() - start
    print(f"{name:<38}{seconds:>8.1f} s {records / seconds / 1e6:>8.2f} million records/s")
    return result


def main(records, workers, place):
    """Print the times of both ways."""
    given, alone, spread = place / "given", place / "alone", place / "spread"
    timed("write the records", records, lambda: write(given, records))
    options = {"domain": DOMAIN, "epsilon": 4.0}
    one = timed("release, one process", records, lambda: fp.release(given, out=alone, **options))
    first = timed("estimate, one process", records, lambda: fp.estimate_frequencies(one))
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(fp.warm_up)  # kernels are loaded, as they are in a cluster that works
        frame = dd.read_parquet(given)
        many = timed(f"check, {workers} workers", records, lambda: fp.release(frame, **options))
        timed(f"draw and write, {workers} workers", records, lambda: many.table.to_parquet(spread))
        second = timed(
            f"estimate, {workers} workers",
            records,
            lambda: fp.estimate_frequencies(dd.read_parquet(spread), many.report),
        )
    assert one.report.n == many.report.n == first.n == second.n == records
    for name in DOMAIN:
        a, b = first[name], second[name]
        error = np.hypot(a.standard_errors, b.standard_errors)
        assert (abs(a.estimates - b.estimates) < 6.0 * error).all(), name
    print("the estimates agree")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    worker_count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    target = Path(tempfile.mkdtemp(dir=sys.argv[3] if len(sys.argv) > 3 else None))
    try:
        main(count, worker_count, target)
    finally:
        shutil.rmtree(target)
