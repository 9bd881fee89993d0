"""Lines of a text file that were seen before: their numbers in, their bytes out."""

import numpy as np

from .declare import Bytes, Ints, int64, kernel, uint64

_NEW_LINE, _QUOTE = 10, 34
#: Multiplier and start of the FNV-1a hash.
_PRIME, _BASIS = np.uint64(1099511628211), np.uint64(14695981039346656037)


@kernel()
def remember_record(slots: Ints, edges: Ints, known: Bytes, k: int) -> None:
    """Enter record k, known[edges[k] : edges[k + 1]], into a table of at least k + 2 slots."""
    code = _BASIS
    for j in range(edges[k], edges[k + 1]):
        code = (code ^ uint64(known[j])) * _PRIME
    mask = uint64(len(slots) - 1)
    slot = (code ^ (code >> uint64(32))) & mask
    while slots[slot] >= 0:
        slot = (slot + uint64(1)) & mask
    slots[slot] = k


@kernel()
def number_records(
    text: Bytes, begin: int, slots: Ints, edges: Ints, known: Bytes, numbers: Ints, count: int
) -> tuple[int, int, int]:
    """Number the records of a text until one is new or unfinished.

    A record ends at a line end outside quotes. Returns how many numbers there are, where the record
    in question begins, and where it ends (-1 if it does not). Places are unsigned, which spares a
    test for negative ones at every byte.
    """
    mask, size = uint64(len(slots) - 1), uint64(len(text))
    start = uint64(begin)
    while True:
        code, quoted, end = _BASIS, False, start
        while end < size:
            byte = text[end]
            if byte == _NEW_LINE and not quoted:
                break
            if byte == _QUOTE:
                quoted = not quoted
            code = (code ^ uint64(byte)) * _PRIME
            end += uint64(1)
        if end == size:
            return count, int64(start), -1
        length = end - start
        slot = (code ^ (code >> uint64(32))) & mask
        while True:
            k = slots[slot]
            if k < 0:
                return count, int64(start), int64(end)
            first = uint64(edges[k])
            same = uint64(edges[k + 1]) - first == length
            if same:
                for j in range(length):
                    if known[first + j] != text[start + j]:
                        same = False
                        break
            if same:
                break
            slot = (slot + uint64(1)) & mask
        numbers[count] = k
        count += 1
        start = end + uint64(1)


@kernel()
def spell_records(numbers: Ints, edges: Ints, known: Bytes, out: Bytes) -> None:
    """Write the text of every numbered record, one behind the other."""
    place = uint64(0)
    for k in numbers:
        first = uint64(edges[k])
        length = uint64(edges[k + 1]) - first
        for j in range(length):
            out[place + j] = known[first + j]
        place += length
