"""Channel capacity against qif, dit and cvxpy with CLARABEL, and batches per second.

All are asked for 1e-9 nats. The error is the gap that the returned input law really proves,
max_x D(W_x || q) - sum_x p(x) D(W_x || q). Blahut-Arimoto may need three steps or thousands, so
a call at small sizes is a loop over several channels, as the instance says: pytest-benchmark prints
the time of the loop, the tables divide it by the number of channels.
"""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import fastpriv.kernels
import instances
from contenders import ours, peer, sizes, yardstick

GAP = 1e-9


def with_qif(matrix):
    """Blahut-Arimoto in C++; its two tolerances are absolute and relative."""
    import qif

    return np.asarray(qif.measure.shannon.add_capacity(matrix, GAP, GAP)[1]).reshape(-1)


def with_dit(matrix):
    """Blahut-Arimoto in numpy, until the capacity changes by less than the tolerance."""
    from dit.algorithms.channelcapacity import channel_capacity

    return channel_capacity(matrix, rtol=0.0, atol=GAP)[1]


def with_cvxpy(matrix):
    """The concave program in exponential cones."""
    import cvxpy as cp

    p = cp.Variable(len(matrix), nonneg=True)
    noise = -(matrix * np.log(matrix)).sum(axis=1)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.entr(matrix.T @ p)) - noise @ p), [cp.sum(p) == 1])
    tolerances = {f"tol_{kind}": GAP for kind in ("gap_abs", "gap_rel", "feas")}
    problem.solve(solver="CLARABEL", **tolerances)
    return np.maximum(p.value, 0.0)


def proved(matrix, p):
    """The gap that an input law proves."""
    p = p / p.sum()
    distances = (matrix * np.log(matrix / (p @ matrix))).sum(axis=1)
    return float(distances.max() - p @ distances)


def each(solve, matrices):
    """Results for all matrices."""
    return [solve(matrix) for matrix in matrices]


#: Name, solver and distribution.
PEERS = [
    ("qif", with_qif, "qif"),
    ("dit", with_dit, "dit"),
    ("cvxpy + CLARABEL", with_cvxpy, "cvxpy"),
]


@pytest.mark.parametrize(
    "size", sizes(2, 8, 64, 200, large=[3, 5, 16, 32, 100, 300, 500, 1000, 2000])
)
def test_capacity(versus, size):
    """One channel at a time."""
    count = max(1, 40 // size)
    matrices = [instances.channel(size, seed=seed) for seed in range(count)]
    channels = [fp.Channel(matrix) for matrix in matrices]

    def judge(laws):
        return {"error": max(map(proved, matrices, laws))}

    versus(
        "channel capacity to 1e-9",
        f"{f'{count} ' if count > 1 else ''}random {size} x {size}",
        ours(
            partial(each, partial(fp.channel_capacity, gap=GAP), channels),
            lambda brackets: {"value": brackets[0].lower, "error": max(b.width for b in brackets)},
            count,
        ),
        *(
            peer(
                name,
                partial(each, solve, matrices),
                judge,
                count,
                needs,
                "minutes at this size" if name == "qif" and size > 300 else None,
            )
            for name, solve, needs in PEERS
        ),
        seed=f"0 to {count - 1}" if count > 1 else 0,
        error_of="proved gap",
        target=GAP,
        headline=size == 200,
        unit="channel" if count > 1 else "call",
    )


@pytest.mark.parametrize("count", sizes(2_000, large=[200_000]))
@pytest.mark.parametrize(
    ("rows", "outputs"), [(2, 2), (2, 4), (2, 16), (3, 3), (4, 4), (5, 5), (6, 6), (8, 8)]
)
def test_batch(versus, rows, outputs, count):
    """Batches: one call with all checks, and the kernel alone on one core."""
    count = count if rows == 2 else count // 10
    batch = instances.channels(count, rows, outputs)
    kernel = fp.kernels.two_row_capacities if rows == 2 else fp.kernels.capacities
    room = np.empty(count), np.empty(count), np.empty((count, rows))
    versus(
        "capacities of a batch to 1e-9",
        f"{count:,} random {rows} x {outputs}",
        ours(partial(fp.channel_capacity, batch), items=count),
        yardstick("kernel, one core", partial(kernel, batch, GAP, 0, count, *room), count),
        seed=0,
        unit="channel",
    )
