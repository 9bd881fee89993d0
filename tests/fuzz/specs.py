"""Cases as plain JSON: drawn from a seed, built as objects of the library and as exact tables."""

import math

import fastpriv as fp
import oracles as o
from fuzz import numbers

#: Sizes of spaces that cases are drawn from.
SPACES = ([1], [2], [3], [4], [1, 2], [2, 2], [2, 3], [3, 2], [2, 2, 2], [1, 1], [3, 3])

#: Local mechanisms, by the number of values and the level.
LOCAL = {
    "unary": fp.UnaryChannel,
    "subset": fp.SubsetChannel,
    "hadamard": fp.HadamardChannel,
    "hashing": fp.HashingChannel,
    "projective": fp.ProjectiveChannel,
}


def random_prior(rng, sizes):
    """Return a prior over a space, of a kind that the space allows."""
    equal = len(set(sizes)) == 1
    n, m = len(sizes), sizes[0]
    kinds = ["dense", "product"] + ["iid", "markov", "uniform"] * equal
    kinds += ["exchangeable"] * (equal and m == 2)
    kind = kinds[rng.integers(len(kinds))]
    if kind == "dense":
        return {"kind": kind, "sizes": sizes, "pmf": numbers.law(rng, math.prod(sizes))}
    if kind == "product":
        laws = [numbers.law(rng, size) for size in sizes]
        return {"kind": kind, "marginals": laws}
    if kind == "iid":
        return {"kind": kind, "law": numbers.law(rng, m), "n": n}
    if kind == "uniform":
        return {"kind": kind, "n": n, "m": m}
    if kind == "exchangeable":
        return {"kind": kind, "weights": numbers.law(rng, n + 1)}
    chain = numbers.matrix(rng, m, m)
    if rng.integers(3) == 0:  # periodic or absorbing
        chain = [[float(j == (i + rng.integers(2)) % m) for j in range(m)] for i in range(m)]
        chain = [row if sum(row) == 1.0 else numbers.law(rng, m) for row in chain]
    return {"kind": kind, "initial": numbers.law(rng, m), "transition": chain, "n": n}


def random_channel(rng, sizes):
    """Return a channel on a space."""
    kinds = ["dense", "dense", "product", "tilted", "posterior", "query"]
    if len(set(sizes)) == 1:
        kinds += ["hamming"]
    kind = kinds[rng.integers(len(kinds))]
    size, columns = math.prod(sizes), int(rng.integers(1, 5))
    if kind == "dense":
        return {"kind": kind, "sizes": sizes, "matrix": numbers.matrix(rng, size, columns)}
    if kind == "product":
        factors = [numbers.matrix(rng, m, int(rng.integers(1, 4))) for m in sizes]
        return {"kind": kind, "factors": factors}
    if kind == "hamming":
        return {"kind": kind, "n": len(sizes), "m": sizes[0], "epsilon": numbers.epsilon(rng)}
    if kind == "query":
        values = rng.integers(0, 3, size).tolist()
        return {
            "kind": kind,
            "sizes": sizes,
            "values": values,
            "matrix": numbers.matrix(rng, max(values) + 1, columns),
        }
    given = random_prior(rng, sizes)
    spec = {"kind": kind, "law": given, "epsilon": numbers.epsilon(rng)}
    if kind == "posterior" and rng.integers(2):  # at, or just above, the least level it exists at
        least = build_prior(given).epsilon_tilde()
        if math.isfinite(least):
            spec["epsilon"] = float(least * (1.0 + rng.integers(3) * 1e-15))
    return spec


def sizes_of(spec):
    """Return the sizes of the space of a prior or a channel."""
    kind = spec["kind"]
    if "sizes" in spec:
        return list(spec["sizes"])
    if kind in ("tilted", "posterior"):
        return sizes_of(spec["law"])
    if kind == "hidden":
        return sizes_of(spec["chain"])
    if kind in LOCAL:
        return [spec["k"]]
    if kind == "product":
        return [len(v) for v in spec.get("marginals") or spec["factors"]]
    if kind == "iid":
        return [len(spec["law"])] * spec["n"]
    if kind == "exchangeable":
        return [2] * (len(spec["weights"]) - 1)
    if kind == "markov":
        return [len(spec["initial"])] * spec["n"]
    return [spec["m"]] * spec["n"]


def outputs_of(spec):
    """Return the number of outputs of a channel."""
    if spec["kind"] == "product":
        return math.prod(len(factor[0]) for factor in spec["factors"])
    return len(spec["matrix"][0]) if "matrix" in spec else math.prod(sizes_of(spec))


def build_prior(spec):
    """Return the prior as an object of the library."""
    kind = spec["kind"]
    if kind == "dense":
        return fp.Dense(spec["pmf"], spec["sizes"])
    if kind == "product":
        return fp.Product(spec["marginals"])
    if kind == "iid":
        return fp.Product.iid(spec["law"], spec["n"])
    if kind == "uniform":
        return fp.Uniform(spec["n"], spec["m"])
    if kind == "exchangeable":
        return fp.Exchangeable(spec["weights"])
    if kind == "hidden":
        chain = build_prior(spec["chain"])
        flips = fp.HammingChannel(
            spec["chain"]["n"], len(spec["chain"]["initial"]), spec["epsilon"]
        )
        return flips.output_distribution(chain)
    return fp.Markov(spec["initial"], spec["transition"], spec["n"])


def build_channel(spec):
    """Return the channel as an object of the library."""
    kind = spec["kind"]
    if kind == "dense":
        return fp.Channel(spec["matrix"], fp.Space(spec["sizes"]))
    if kind == "product":
        return fp.ProductChannel(spec["factors"])
    if kind == "hamming":
        return fp.HammingChannel(spec["n"], spec["m"], spec["epsilon"])
    if kind == "query":
        return fp.QueryChannel(spec["values"], spec["matrix"], fp.Space(spec["sizes"]))
    if kind in LOCAL:
        return LOCAL[kind](spec["k"], spec["epsilon"])
    if kind == "columns":
        return fp.ColumnsChannel([fp.HammingChannel(1, m, spec["epsilon"]) for m in spec["sizes"]])
    if kind == "record":
        return fp.RecordChannel(fp.HammingChannel(2, 2, spec["epsilon"]))
    made = fp.TiltedChannel if kind == "tilted" else fp.PosteriorChannel
    return made(build_prior(spec["law"]), spec["epsilon"])


def true_prior(spec):
    """Return the exact probabilities, every law of the definition divided by its exact sum."""
    kind = spec["kind"]
    if kind == "dense":
        return o.normal(spec["pmf"])
    if kind == "product":
        return o.product_pmf([o.normal(law) for law in spec["marginals"]])
    if kind == "iid":
        return o.product_pmf([o.normal(spec["law"])] * spec["n"])
    if kind == "uniform":
        size = spec["m"] ** spec["n"]
        return [o.num(1) / size] * size
    if kind == "exchangeable":
        return o.exchangeable_pmf(o.normal(spec["weights"]), len(spec["weights"]) - 1)
    chain = [o.normal(row) for row in spec["transition"]]
    return o.markov_pmf(o.normal(spec["initial"]), chain, spec["n"])


def true_channel(spec):
    """Return the exact matrix; entries of a matrix that was given are taken as they are."""
    kind = spec["kind"]
    if kind == "dense":
        return o.nums(spec["matrix"])
    if kind == "product":
        return o.product_matrix([o.nums(factor) for factor in spec["factors"]])
    if kind == "hamming":
        return o.e_d_matrix([spec["m"]] * spec["n"], spec["epsilon"])
    if kind == "query":
        return o.query_matrix(spec["values"], o.nums(spec["matrix"]))
    law, sizes = true_prior(spec["law"]), sizes_of(spec)
    made = o.tilted_matrix if kind == "tilted" else o.e_i_matrix
    return made(law, sizes, spec["epsilon"])


def readings(spec, matrix, channel, laws):
    """Yield the matrices that the numbers of a channel may mean.

    Entries that are given are taken as they are, and where laws are composed every row is divided
    by its exact sum. The output law of E_i is rounded to floats, from which it is drawn: E_i is
    that law tilted. At its least epsilon the exact one may be negative: that is no channel.
    """
    given = spec["kind"] in ("dense", "product", "query")
    exact = [o.normal(row) for row in matrix] if given and laws else matrix
    if min(map(min, exact)) >= 0:
        yield exact
    if spec["kind"] == "posterior":
        yield o.tilted_matrix(output_law(channel.base, o.num), sizes_of(spec), spec["epsilon"])


def output_law(law, number):
    """Return the probabilities that a law of the library means, exact where rows are independent.

    Its own vector has lost products below the range of a double.
    """
    factors = law.marginals if isinstance(law, fp.Product) else [law.pmf()]
    return o.product_pmf([[number(float(v)) for v in factor] for factor in factors])


def as_given(spec):
    """Whether rows are taken as they are; those further from one are divided by their sums."""
    tables = spec.get("factors", []) + ([spec["matrix"]] if "matrix" in spec else [])
    rows = [row for table in tables for row in table]
    return all(abs(math.fsum((-1.0, *row))) < 5e-15 for row in rows)


def least_number(spec):
    """Return the least positive number in a case, which says how many digits the truth needs."""
    if isinstance(spec, dict):
        return min(map(least_number, spec.values()), default=1.0)
    if isinstance(spec, list):
        return min(map(least_number, spec), default=1.0)
    if isinstance(spec, float) and math.isfinite(spec) and spec > 0.0:
        # 745 is as hard as e^-745
        return min(spec, max(math.exp(-spec), 5e-324), abs(1.0 - spec) or 1.0)
    return 1.0
