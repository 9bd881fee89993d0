"""One table of large privacy programs: size, engine, time, memory, certified gap, and peers.

    python benchmarks/large_programs.py                 # all rows, about two hours
    python benchmarks/large_programs.py --limit 30      # no run longer than 30 s
    python benchmarks/large_programs.py --rows dense    # rows whose name contains a word
    python benchmarks/large_programs.py --list          # names and time limits

Every run has a process of its own, so memory is its peak. The level and the cost of every returned
mechanism are measured again by plain numpy below, without fastpriv. Peers solve the same
program, with all pairs that are needed, and stop at the time limit; the gap of a peer is what it
reports itself.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

#: Seconds of a peer.
PEER_LIMIT = 300.0
#: Peers are started up to this many rows of the linear program: more do not fit into memory.
MAX_ROWS = 3_000_000
PEERS = ("simplex", "ipm", "pdlp", "clarabel")


def bits(n):
    """Random dense prior on n bits: prior, distances, pairs of neighbours, level."""
    p = np.random.default_rng(0).random(2**n)
    x = np.arange(2**n)
    apart = np.array([[(a ^ b).bit_count() for b in range(2**n)] for a in range(2**n)], float)
    source, target = np.repeat(x, n), (x[:, None] ^ (1 << np.arange(n))).reshape(-1)
    return p / p.sum(), apart, source, target, 1.0


def cells(side, uneven):
    """Cells of a grid: uniform, or two crowded places and noise. All pairs are related."""
    places = np.array([(i, j) for i in range(side) for j in range(side)], float)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    p = np.ones(side * side)
    if uneven:
        near, far = (places - side * np.array(c) for c in ((0.3, 0.4), (0.8, 0.7)))
        p = np.exp(-(near**2).sum(axis=1) / (0.3 * side) ** 2)
        p += 0.5 * np.exp(-(far**2).sum(axis=1) / (0.15 * side) ** 2)
        p += 0.05 * np.random.default_rng(1).random(len(p))
    source, target = np.nonzero(apart)
    return p / p.sum(), apart, source, target, math.log(2.0) / 2.0


#: Name, arguments of the instance, gap, and time limit in seconds.
ROWS = {
    **{f"dense N = {2**n}": ("bits", (n,), gap, limit) for n, gap, limit in (
        (6, 1e-4, 60), (7, 1e-4, 60), (8, 1e-4, 120), (9, 1e-4, 600), (10, 1e-3, 600),
    )},
    **{f"{side} x {side} cells, {word}": ("cells", (side, word == "uneven"), 1e-3, limit)
       for word in ("uniform", "uneven")
       for side, limit in ((8, 60), (16, 120), (24, 300), (32, 300))},
    **{f"types of {n} bits": ("types", (n,), 1e-6, limit)
       for n, limit in ((20, 60), (40, 60), (60, 60), (100, 120), (200, 300))},
}  # fmt: skip


def ours(kind, arguments, gap, limit, keep=None):
    """Solve by fastpriv; measure the matrix again, except on types."""
    import fastpriv as fp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)
        begun, used = time.perf_counter(), time.process_time()
        if kind == "types":
            prior = fp.Exchangeable.beta_binomial(*arguments, 0.5, 0.8)
            solution = fp.solve_pd_dp(prior, 1.0, gap=gap, time_limit=limit)
        else:
            p, apart, source, target, level = INSTANCES[kind](*arguments)
            given, prior = {}, p
            if kind == "bits":
                prior = fp.Dense(p, [2] * arguments[0])
            else:
                given = {"metric": apart, "neighbours": apart}
            solution = fp.solve_pd_dp(prior, level, gap=gap, time_limit=limit, **given)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    if keep and kind == "cells":
        kept(keep, arguments[0], p, apart, solution)
    answer = {
        "solver": solution.solver, "seconds": seconds, "cpu": cpu, "gap": solution.gap,
        "value": solution.value, "stopped": not solution.converged,
    }  # fmt: skip
    if kind != "types":
        matrix = solution.channel.matrix()
        cost = math.fsum((p[:, None] * matrix * apart).reshape(-1))
        answer["sound"] = bool(
            measured_level(matrix, apart, source, target) <= level * (1.0 + 1e-12)
            and abs(matrix.sum(axis=1) - 1.0).max() <= 1e-12
            and abs(cost - solution.value) <= 1e-9 * cost
        )
    return answer


def kept(path, side, p, apart, solution):
    """Write what a picture of a mechanism on cells shows: tools/pictures.py reads it."""
    matrix, at = solution.channel.matrix(), (3 * side // 4, 11 * side // 16)
    shown = {
        "prior": p, "outputs": matrix[at[0] * side + at[1]], "costs": (matrix * apart).sum(axis=1),
    }  # fmt: skip
    table = {
        name: np.round(values, 7).reshape(side, side).tolist() for name, values in shown.items()
    }
    given = {"value": solution.value, "bound": solution.bound, "level": solution.level, "at": at}
    pathlib.Path(path).write_text(json.dumps(given | table) + "\n")


def measured_level(matrix, apart, source, target):
    """Return the largest log-ratio of two rows per unit of distance, by plain numpy."""
    worst = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(matrix)
    for first in range(0, len(source), 4096):
        x, z = source[first : first + 4096], target[first : first + 4096]
        worst = max(worst, float(((logs[x] - logs[z]).max(axis=1) / apart[x, z]).max()))
    return worst


def plain(kind, arguments):
    """Return the linear program in W[x, y]: costs, ratio rows (<= 0) and sums (= 1)."""
    import scipy.sparse as sp

    p, apart, source, target, level = INSTANCES[kind](*arguments)
    size, count = len(p), len(source)
    if count * size > MAX_ROWS:
        return None
    here, there = ((end[:, None] * size + np.arange(size)).reshape(-1) for end in (source, target))
    grow = np.repeat(np.exp(level * apart[source, target]), size)
    index = np.arange(count * size)
    entries = np.concatenate([np.ones(len(index)), -grow])
    places = (np.tile(index, 2), np.concatenate([here, there]))
    ratio = sp.csr_matrix((entries, places), shape=(len(index), size * size))
    total = sp.kron(sp.eye(size), np.ones((1, size)), format="csr")
    return (p[:, None] * apart).reshape(-1), ratio, total


def peer(name, kind, arguments, limit):
    """Solve the plain program by HiGHS or CLARABEL; its own word for how it ended."""
    import scipy.sparse as sp

    given = plain(kind, arguments)
    if given is None:
        return {"ended": "not run: too many rows"}
    cost, ratio, total = given
    begun = time.perf_counter()
    if name == "clarabel":
        import clarabel

        cones = [clarabel.ZeroConeT(total.shape[0]),
                 clarabel.NonnegativeConeT(ratio.shape[0] + len(cost))]  # fmt: skip
        rows = sp.vstack([total, ratio, -sp.eye(len(cost))], format="csc")
        right = np.concatenate([np.ones(total.shape[0]), np.zeros(ratio.shape[0] + len(cost))])
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit = False, limit
        empty = sp.csc_matrix((len(cost), len(cost)))
        done = clarabel.DefaultSolver(empty, cost, rows, right, cones, settings).solve()
        value, ended = done.obj_val, str(done.status)
    else:
        import highspy

        rows = sp.vstack([ratio, total], format="csr")
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = rows.shape
        lp.col_cost_, lp.col_lower_ = cost, np.zeros(len(cost))
        lp.col_upper_ = np.full(len(cost), np.inf)
        lp.row_lower_ = np.r_[np.full(ratio.shape[0], -np.inf), np.ones(total.shape[0])]
        lp.row_upper_ = np.r_[np.zeros(ratio.shape[0]), np.ones(total.shape[0])]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
        lp.a_matrix_.value_ = rows.data
        solver = highspy.Highs()
        solver.silent()
        solver.setOptionValue("solver", name)
        solver.setOptionValue("time_limit", float(limit))
        solver.passModel(lp)
        solver.run()
        value = solver.getObjectiveValue()
        ended = solver.modelStatusToString(solver.getModelStatus())
    return {"seconds": time.perf_counter() - begun, "value": value, "ended": ended}


INSTANCES = {"bits": bits, "cells": cells}


def alone(task):
    """Run a task in a process of its own; add the peak of its memory."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    try:
        # A peer may check its time limit rarely.
        most = 2.0 * task[4] + 120.0
        done = subprocess.run(command, capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        return {"ended": f"not ended after {most:.0f} s"}
    if done.returncode:
        return {"ended": (done.stderr.strip().splitlines() or ["killed"])[-1][:80]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_task(task):
    """Run one task here, and print its result as JSON."""
    name, kind, arguments, gap, limit, keep = task
    if name == "ours":
        answer = ours(kind, arguments, gap, limit, keep)
    else:
        answer = peer(name, kind, arguments, limit)
    answer["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(answer))


def text(answer):
    """Return a peer's cell of the table."""
    if "seconds" not in answer:
        return answer["ended"]
    return f"{answer['value']:.6g} in {answer['seconds']:.3g} s, {answer['ended']}"


def main():
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="run rows whose name contains this")
    parser.add_argument("--limit", type=float, default=math.inf, help="most seconds of a run")
    parser.add_argument("--keep", help="write a mechanism on cells to this file, for its picture")
    parser.add_argument("--no-peers", action="store_true", help="run fastpriv alone")
    parser.add_argument("--list", action="store_true", help="list names and limits, and leave")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        run_task(json.loads(options.task))
        return
    peers = () if options.no_peers else PEERS
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| program | engine | time | memory | value | certified gap | measured again |"
          + "".join(f" {name} |" for name in peers))  # fmt: skip
    print("|---" * (7 + len(peers)) + "|")
    for name, (kind, arguments, gap, limit) in ROWS.items():
        if options.rows not in name:
            continue
        if options.list:
            print(f"| {name} | gap {gap:g} | at most {limit} s |")
            continue
        limit = min(limit, options.limit)
        row = alone(["ours", kind, arguments, gap, limit, options.keep])
        if "ended" in row:
            print(f"| {name} | {row['ended']} |", flush=True)
            continue
        sound = {True: "yes", False: "**no**"}.get(row.get("sound"), "")
        cell = [
            name, row["solver"],
            f"{row['seconds']:.3g} s, {row['cpu']:.3g} s of CPU" + (", stopped" * row["stopped"]),
            f"{row['gigabytes']:.2f} GB", f"{row['value']:.6g}", f"{row['gap']:.1e}", sound,
        ]  # fmt: skip
        if kind != "types":
            most = min(PEER_LIMIT, options.limit)
            cell += [text(alone([p, kind, arguments, gap, most, None])) for p in peers]
        print("| " + " | ".join(cell) + " |", flush=True)


if __name__ == "__main__":
    main()
