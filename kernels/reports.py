"""Reports of local mechanisms: bits with a common chance, and subsets of a common size.

The rules of kernels/sampling.py hold: a kernel returns how many draws are finished and how many
words those used, and an unfinished draw is begun again on the same words with more behind them.
"""

import numpy as np
from numba import uint64

from fastpriv.kernels.declare import Bytes, IntMatrix, Ints, Words, kernel


@kernel()
def draw_bits(words: Words, threshold: np.uint64, out: Words) -> tuple[int, int]:
    """Fill words of 64 bits, each bit 1 with chance threshold / 2^64.

    Bit j compares a 64-bit number with the threshold, digit after digit from the first one. Word i
    holds digit i of all 64 numbers. Half of those still equal to the threshold differ in the next
    digit, so that about eight words decide all of them.
    """
    used = 0
    for j in range(out.shape[0]):
        at, equal, less, rest = used, ~uint64(0), uint64(0), threshold
        while equal != uint64(0) and rest != uint64(0):
            if at == words.shape[0]:
                return j, used
            digits = words[at]
            at += 1
            if rest >> uint64(63):
                less |= equal & ~digits
                equal &= digits
            else:
                equal &= ~digits
            rest <<= uint64(1)
        out[j], used = less, at
    return out.shape[0], used


@kernel()
def draw_subsets(
    values: Ints, inside: Bytes, k: int, words: Words, marks: Bytes, out: IntMatrix
) -> tuple[int, int]:
    """Draw subsets of 0 .. k - 1 of a common size, sorted, with or without a given value each.

    The other members are drawn one by one, each uniform among the values that are left; where
    they are more than half, those that are left out are drawn instead. ``marks`` is room for k
    marks and must be zero.
    """
    size, others = out.shape[1], uint64(k - 1)
    shift, top = uint64(63), uint64(2)
    while top < others:
        top <<= uint64(1)
        shift -= uint64(1)
    used = 0
    for j in range(out.shape[0]):
        at, x = used, values[j]
        wanted = size - inside[j]
        marked = wanted if 2 * wanted <= k - 1 else k - 1 - wanted
        short, count = False, 0
        while count < marked:
            if at == words.shape[0]:
                short = True
                break
            pick = words[at] >> shift
            at += 1
            if pick >= others:
                continue
            v = np.int64(pick)
            if v >= x:
                v += 1
            if marks[v] == 0:
                marks[v] = 1
                count += 1
        if not short:
            place, drawn = 0, 1 if marked == wanted else 0
            for v in range(k):
                member = inside[j] if v == x else marks[v] == drawn
                if member:
                    out[j, place] = v
                    place += 1
        marks[:] = 0
        if short:
            return j, used
        used = at
    return out.shape[0], used
