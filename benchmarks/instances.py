"""The instances of the benchmarks, from seeds, the same bits on every machine.

``python benchmarks/instances.py --out DIR [NAME ...]`` writes the named instances (all without
names) as .npy files, with parameters in instances.json and SHA-256 sums in SHA256SUMS, so that
other software can be compared on them. Only the raw 64-bit words of PCG64, which NumPy keeps
stable, and operations that IEEE 754 rounds exactly are used: no logarithm, no library sampler.
"""

import argparse
import hashlib
import json
import math
from pathlib import Path

import numpy as np


def uniform(seed, count):
    """Multiples of 2^-53 in [0, 1)."""
    return (np.random.PCG64(seed).random_raw(count) >> np.uint64(11)) * 2.0**-53


def simplex(seed, outputs, rows=1, weight=1):
    """Laws drawn from Dirichlet(weight, ..., weight): gaps between sorted uniform numbers.

    A law with weight k is the sum of k neighbouring gaps each. Gaps are exact, and so is their
    sum: every row adds up to 1 without any rounding.
    """
    marks = np.zeros((rows, outputs * weight + 1))
    marks[:, 1:-1] = uniform(seed, rows * (outputs * weight - 1)).reshape(rows, -1)
    marks[:, -1] = 1.0
    marks.sort(axis=1)
    return np.diff(marks[:, ::weight], axis=1)


def channel(size, outputs=None, seed=0, weight=1):
    """A random channel, rows uniform on the simplex (nearer to each other for a larger weight)."""
    return simplex([seed, size], outputs or size, size, weight)


def channels(count, rows, outputs, seed=0):
    """A batch of random channels."""
    return simplex([seed, rows, outputs], outputs, count * rows).reshape(count, rows, outputs)


def prior(size, seed=0):
    """A law uniform on the simplex: many entries are tiny."""
    return simplex([seed, size, 1], size)[0]


def even_prior(size, seed=0):
    """A law whose entries are within a factor of 21 of each other."""
    found = uniform([seed, size, 2], size) + 0.05
    return found / math.fsum(found)


def joint(secrets, inputs, seed=0):
    """A law of a secret and an input, uniform on the simplex."""
    return simplex([seed, secrets, inputs], secrets * inputs)[0].reshape(secrets, inputs)


def codes(rows, sizes, seed=0):
    """A table of codes, sizes powers of two."""
    words = np.random.PCG64([seed, len(sizes)]).random_raw(rows * len(sizes)) >> np.uint64(32)
    return (words.reshape(rows, -1) & (np.array(sizes, dtype=np.uint64) - 1)).astype(np.uint8)


def hamming(bits):
    """Number of bits in which two databases differ."""
    numbers = np.arange(2**bits)
    different, found = numbers[:, None] ^ numbers, np.zeros((2**bits, 2**bits))
    for bit in range(bits):
        found += different >> bit & 1
    return found


#: Instances that are written, by name: (function, parameters).
NAMED = {
    **{f"channel-{n}": (channel, {"size": n}) for n in (2, 3, 8, 48, 64, 200, 1000)},
    **{f"channel-{n}x16": (channel, {"size": n, "outputs": 16}) for n in (16, 128, 512)},
    **{f"even-prior-{n}": (even_prior, {"size": n}) for n in (16, 32, 64, 128, 256)},
    **{f"prior-{n}": (prior, {"size": n}) for n in (64, 256, 1024, 4096, 65536)},
    **{f"joint-{n}x{n}": (joint, {"secrets": n, "inputs": n}) for n in (2, 20, 50)},
    "channels-2x2": (channels, {"count": 1000, "rows": 2, "outputs": 2}),
    "channels-8x8": (channels, {"count": 1000, "rows": 8, "outputs": 8}),
    "codes-4": (codes, {"rows": 10_000, "sizes": [4]}),
    "codes-titanic": (codes, {"rows": 10_000, "sizes": [4, 2, 2, 2]}),
}


def make(name):
    """A named instance."""
    function, parameters = NAMED[name]
    return function(**parameters)


def checksum(array):
    """SHA-256 of the numbers, little-endian and in C order."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return hashlib.sha256(plain.tobytes()).hexdigest()


def main():
    """Write instances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    unknown = set(given.names) - set(NAMED)
    if unknown:
        parser.error(f"no instance {', '.join(sorted(unknown))}; there are {', '.join(NAMED)}")
    given.out.mkdir(parents=True, exist_ok=True)
    listed, sums = {}, []
    for name in given.names or NAMED:
        array = make(name)
        np.save(given.out / f"{name}.npy", array)
        function, parameters = NAMED[name]
        listed[name] = {"made_by": function.__name__, "seed": 0, **parameters}
        listed[name] |= {"shape": array.shape, "dtype": array.dtype.name, "data": checksum(array)}
        saved = hashlib.sha256((given.out / f"{name}.npy").read_bytes()).hexdigest()
        sums.append(f"{saved}  {name}.npy\n")
    (given.out / "instances.json").write_text(json.dumps(listed, indent=1) + "\n")
    (given.out / "SHA256SUMS").write_text("".join(sums))
    print(f"{len(listed)} instances in {given.out}")


if __name__ == "__main__":
    main()
