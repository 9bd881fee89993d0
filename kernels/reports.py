"""Messages of local mechanisms: bits with a common probability, and subsets of a common size.

The rules of kernels/sampling.py hold: a kernel returns how many draws are finished and how many
words those used, and an unfinished draw is begun again on the same words with more behind them.
"""

import numpy as np

from .declare import Bytes, IntMatrix, Ints, Words, helper, kernel, uint64


@helper()
def _bits(words, at, threshold):
    """Draw 64 bits, each 1 with probability threshold / 2^64. Return them and the place, or -1.

    Bit j compares a 64-bit number with the threshold, digit after digit from the first one. Word i
    holds digit i of all 64 numbers. Half of those still equal to the threshold differ in the next
    digit, so that about eight words decide all of them.
    """
    equal, less, rest = ~uint64(0), uint64(0), threshold
    while equal != uint64(0) and rest != uint64(0):
        if at == words.shape[0]:
            return less, -1
        digits = words[at]
        at += 1
        if rest >> uint64(63):
            less |= equal & ~digits
            equal &= digits
        else:
            equal &= ~digits
        rest <<= uint64(1)
    return less, at


@helper()
def _ones(word):
    """Count the bits of a word that are 1."""
    word -= (word >> uint64(1)) & uint64(0x5555555555555555)
    twos = uint64(0x3333333333333333)
    word = (word & twos) + ((word >> uint64(2)) & twos)
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * uint64(0x0101010101010101)) >> uint64(56))


@kernel()
def draw_bits(words: Words, threshold: np.uint64, out: Words) -> tuple[int, int]:
    """Fill words of 64 bits, each bit 1 with probability threshold / 2^64."""
    used = 0
    for j in range(out.shape[0]):
        drawn, at = _bits(words, used, threshold)
        if at < 0:
            return j, used
        out[j], used = drawn, at
    return out.shape[0], used


@kernel()
def draw_subsets(
    values: Ints,
    inside: Bytes,
    k: int,
    threshold: np.uint64,
    words: Words,
    marks: Words,
    out: IntMatrix,
) -> tuple[int, int]:
    """Draw subsets of 0 .. k - 1 of a common size, sorted, with or without a given value each.

    First every other value is marked with probability threshold / 2^64. Given their number, all
    sets of so many values are equally likely. Values that are missing are then added one by one,
    each uniform among those that are not marked, and values beyond the size are taken away
    likewise: all sets stay equally likely, whatever the threshold; about size/k spares most of
    this. Indices take as many bits of a word as they need, from the lowest on. ``marks`` is room
    for k - 1 bits.
    """
    size, others, width = out.shape[1], k - 1, marks.shape[0]
    bits, most = 1, 2
    while most < others:
        bits, most = bits + 1, 2 * most
    mask, each, used = uint64(most - 1), 64 // bits, 0
    row = np.empty(size + 1, np.int64)
    for j in range(out.shape[0]):
        at, count = used, 0
        for i in range(width):
            drawn, at = _bits(words, at, threshold)
            if at < 0:
                return j, used
            if i == width - 1:
                drawn &= ~uint64(0) >> uint64(64 * width - others)
            marks[i] = drawn
            count += _ones(drawn)
        wanted, left, word = size - inside[j], 0, uint64(0)
        step = 1 if count < wanted else -1
        while count != wanted:
            if left == 0:
                if at == words.shape[0]:
                    return j, used
                word, left = words[at], each
                at += 1
            pick = np.int64(word & mask)
            word >>= uint64(bits)
            left -= 1
            if pick < others:
                bit = uint64(1) << uint64(pick & 63)
                if ((marks[pick >> 6] & bit) == uint64(0)) == (step > 0):
                    marks[pick >> 6] ^= bit
                    count += step
        # Every value is written, and the place moves on if it is a member.
        x, place = values[j], 0
        for v in range(x):
            row[place] = v
            place += np.int64((marks[v >> 6] >> uint64(v & 63)) & uint64(1))
        row[place] = x
        place += inside[j]
        for v in range(x, others):
            row[place] = v + 1
            place += np.int64((marks[v >> 6] >> uint64(v & 63)) & uint64(1))
        for i in range(size):
            out[j, i] = row[i]
        used = at
    return out.shape[0], used
