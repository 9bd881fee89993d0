"""Turning random 64-bit words into outputs whose probabilities are known exactly.

There are two ways. A distribution that is used again is rounded once to integer weights that add up
to 2^64, and a word is looked up among them. A distribution that depends on earlier draws is sampled
by coins whose probability is exactly a floating-point number. A word is compared with the binary
digits of that number. A tie, of probability 2^-64, takes the next word.

Sequential kernels return how many draws are finished and how many words those used; an unfinished
draw is begun again on the same words with more behind them, so that running out changes nothing.
"""

import numpy as np

from .arrays import copy
from .declare import (
    Cells,
    Codes,
    IntMatrix,
    Ints,
    Matrix,
    ShortMatrix,
    Vector,
    WordMatrix,
    Words,
    helper,
    kernel,
    uint64,
)

#: A number of any size is v 2^(512 e) with v in [2^-256, 2^256), or v = 0.
_LOW, _HIGH, _DOWN, _UP = 2.0**-256, 2.0**256, 2.0**-512, 2.0**512
_WORD = 2.0**64
#: The entry of a table of steps that leaves the answer to further bits.
_TIE = 65535


@kernel(small=True)
def integer_weights(laws: Matrix, weights: WordMatrix, last: Ints) -> None:
    """Round every distribution to weights with sum 2^64; zeros stay zero, the rest positive.

    A prefix sum of the distribution, scaled to 2^64, is cut down to an integer where each weight
    ends, so a weight is less than one away from its share. Shares below one that were cut to
    nothing get one, taken from the largest. ``last`` receives the last output that can occur. A
    weight of 2^64, the only output of its distribution, is kept as 0.
    """
    half = 2.0**63
    for x in range(laws.shape[0]):
        # The sum times 2^64, less 2^64: whole parts wrap around, fractions are exact.
        whole, part = np.uint64(0), 0.0
        for y in range(laws.shape[1]):
            share = laws[x, y] * _WORD
            floor = np.floor(share)
            part += share - floor
            # The conversion is defined below 2^64 only, and a share may reach it.
            whole += (
                np.uint64(floor - half) + np.uint64(half) if floor >= half else np.uint64(floor)
            )
        excess = np.float64(np.int64(whole)) + part
        stretch = -excess / (1.0 + excess / _WORD)
        total, carry, most = np.uint64(0), 0.0, 0
        for y in range(laws.shape[1]):
            weights[x, y] = np.uint64(0)
            if laws[x, y] > 0.0:
                last[x] = y
                share = laws[x, y] * _WORD
                floor = np.floor(share)
                carry += (share - floor) + laws[x, y] * stretch
                up = np.floor(carry)
                carry -= up
                w = np.uint64(floor - half) + np.uint64(half) if floor >= half else np.uint64(floor)
                w += np.uint64(np.int64(up))
                if w == np.uint64(0) and share < 2.0:
                    w = np.uint64(1)
                weights[x, y] = w
                total += w
                if laws[x, y] > laws[x, most]:
                    most = y
        weights[x, most] -= total


@kernel()
def guide_tables(
    weights: WordMatrix, last: Ints, shift: int, edges: WordMatrix, guide: ShortMatrix
) -> None:
    """Sum weights to edges, and note for each value of a word's top bits the first output it has.

    Output y answers words from edges[y - 1] to edges[y] - 1, the last one all that are left.
    """
    for x in range(weights.shape[0]):
        total = uint64(0)
        for y in range(weights.shape[1]):
            total += weights[x, y]
            edges[x, y] = total
        y = 0
        for cell in range(guide.shape[1]):
            word = uint64(cell) << uint64(shift)
            while y < last[x] and edges[x, y] <= word:
                y += 1
            guide[x, cell] = y


@kernel()
def look_up(
    codes: Codes,
    words: Words,
    edges: WordMatrix,
    last: Ints,
    guide: ShortMatrix,
    shift: int,
    out: Codes,
) -> None:
    """Draw from the distribution of every code, one word each."""
    down = uint64(shift)
    for j in range(codes.shape[0]):
        x, u = uint64(codes[j]), words[j]
        y = guide[x, u >> down]
        while y < last[x] and edges[x, y] <= u:
            y += 1
        out[j] = y


@kernel()
def step_by_cells(codes: Codes, cells: Cells, steps: Cells, m: int, out: Codes, ties: Ints) -> int:
    """Move codes by the step that 16 bits settle; list and count those they do not."""
    size = uint64(m)
    count = 0
    for j in range(codes.shape[0]):
        step = steps[cells[j]]
        if step == _TIE:
            ties[count] = j
            count += 1
        v = uint64(codes[j]) + uint64(step)
        out[j] = v - size if v >= size else v
    return count


@kernel()
def step_by_words(
    codes: Codes,
    places: Ints,
    words: Words,
    m: int,
    stay: np.uint64,
    move: np.uint64,
    final: np.uint64,
    out: Codes,
) -> int:
    """Keep or move the codes at ``places``, one word each; list and count those to try again.

    The first ``stay`` words keep a code, the next ones move it on by 1, 2, ..., m - 1, ``move``
    words each, up to the word ``final``; later ones decide nothing.
    """
    size, count = uint64(m), 0
    inverse = 1.0 / np.float64(move)
    for j in range(words.shape[0]):
        u, place = words[j], places[j]
        if u > final:
            places[count] = place
            count += 1
        elif u < stay:
            out[place] = codes[place]
        else:
            # The quotient of doubles is within one of the quotient of integers.
            past = u - stay
            steps = uint64(np.float64(past) * inverse)
            if steps * move > past:
                steps -= uint64(1)
            elif past - steps * move >= move:
                steps += uint64(1)
            v = uint64(codes[place]) + uint64(1) + steps
            out[place] = v - size if v >= size else v
    return count


@helper()
def _normal(v, e):
    if v == 0.0:
        return 0.0, 0
    while v < _LOW:
        v *= _UP
        e -= 1
    while v >= _HIGH:
        v *= _DOWN
        e += 1
    return v, e


@helper()
def _plus(v, e, w, f):
    if v == 0.0 or w == 0.0:
        return (w, f) if v == 0.0 else (v, e)
    if e < f:
        v, e, w, f = w, f, v, e
    if e == f:
        v += w
    elif e == f + 1:
        v += w * _DOWN
    return _normal(v, e)


@helper()
def _coin(v, e, words, at):
    """Toss a coin of probability v 2^(512 e) <= 1/2. Return 1 or 0, -1 without words; place."""
    while v > 0.0:
        if at == words.shape[0]:
            return -1, at
        v *= _WORD
        if e < 0 and v >= _HIGH:
            v *= _DOWN
            e += 1
        digit = uint64(v) if e == 0 else uint64(0)
        word = words[at]
        at += 1
        if word != digit:
            return (1 if word < digit else 0), at
        if e == 0:
            v -= np.floor(v)
    return 0, at


@helper()
def _choose(v, e, size, order, sums, scales, words, at):
    """Draw an index below ``size`` in proportion to numbers v 2^(512 e), one of them positive.

    From the smallest to the largest, each against all that follow: no probability exceeds 1/2, so
    both sides of every coin are right to a few ulp of their own. Return -1 without words; and the
    place. The other arrays are workspace.
    """
    count = 0
    for k in range(size):  # insertion sort of the positive ones
        if v[k] > 0.0:
            j = count
            while j > 0 and (
                e[k] < e[order[j - 1]] or (e[k] == e[order[j - 1]] and v[k] < v[order[j - 1]])
            ):
                order[j] = order[j - 1]
                j -= 1
            order[j] = k
            count += 1
    top = order[count - 1]
    total, scale = v[top], e[top]
    for j in range(count - 2, -1, -1):
        total, scale = _plus(total, scale, v[order[j]], e[order[j]])
        sums[j], scales[j] = total, scale
    for j in range(count - 1):
        k = order[j]
        chance, power = _normal(v[k] / sums[j], e[k] - scales[j])
        side, at = _coin(chance, power, words, at)
        if side != 0:
            return (k if side == 1 else -1), at
    return top, at


@kernel()
def state_sums(
    value: Vector,
    power: Ints,
    starts: Ints,
    factors: Ints,
    jumps: Ints,
    sizes: Ints,
    x: Ints,
    tilt: float,
    tilt_power: int,
) -> None:
    """Fill in, from the last record to the first, the weight of all that can follow a state.

    State c of level i becomes c factors[i] + jumps[v] if record i has output v. The weight is 1
    if v is x[i], and the tilt otherwise. Level n holds the weights of complete outputs.
    """
    for i in range(sizes.shape[0] - 1, -1, -1):
        ahead = starts[i + 1]
        for c in range(starts[i + 1] - starts[i]):
            total, scale = 0.0, 0
            for v in range(sizes[i]):
                place = ahead + c * factors[i] + jumps[v]
                w, f = value[place], power[place]
                if v != x[i]:
                    w, f = _normal(w * tilt, f + tilt_power)
                total, scale = _plus(total, scale, w, f)
            value[starts[i] + c], power[starts[i] + c] = total, scale


@kernel()
def state_draws(
    value: Vector,
    power: Ints,
    starts: Ints,
    factors: Ints,
    jumps: Ints,
    sizes: Ints,
    x: Ints,
    tilt: float,
    tilt_power: int,
    words: Words,
    out: IntMatrix,
) -> tuple[int, int]:
    """Draw outputs of one database record by record; see state_sums."""
    width = jumps.shape[0]
    v, sums = np.empty((2, width))
    e, order, scales = np.empty((3, width), np.int64)
    used = 0
    for j in range(out.shape[0]):
        at, c = used, 0
        for i in range(sizes.shape[0]):
            for s in range(sizes[i]):
                place = starts[i + 1] + c * factors[i] + jumps[s]
                v[s], e[s] = value[place], power[place]
                if s != x[i]:
                    v[s], e[s] = _normal(v[s] * tilt, e[s] + tilt_power)
            s, at = _choose(v, e, sizes[i], order, sums, scales, words, at)
            if s < 0:
                return j, used
            out[j, i] = s
            c = c * factors[i] + jumps[s]
        used = at
    return out.shape[0], used


@kernel()
def chain_draws(
    initial: Vector,
    initial_power: Ints,
    step: Matrix,
    step_power: IntMatrix,
    rows: IntMatrix,
    tilt: float,
    tilt_power: int,
    words: Words,
    out: IntMatrix,
) -> tuple[int, int]:
    """Draw from a chain tilted towards each of the given databases: backwards sums, then draws."""
    k, n = rows.shape
    m = initial.shape[0]
    value, power = np.empty((n, m)), np.empty((n, m), np.int64)
    v, sums = np.empty((2, m))
    e, order, scales = np.empty((3, m), np.int64)
    used = 0
    for j in range(k):
        for i in range(n - 1, -1, -1):
            for s in range(m):
                total, scale = 1.0, 0
                if i + 1 < n:
                    total = 0.0
                    for t in range(m):
                        w, f = _normal(
                            step[s, t] * value[i + 1, t], step_power[s, t] + power[i + 1, t]
                        )
                        total, scale = _plus(total, scale, w, f)
                if s != rows[j, i]:
                    total, scale = _normal(total * tilt, scale + tilt_power)
                value[i, s], power[i, s] = total, scale
        at, last = used, 0
        for i in range(n):
            for s in range(m):
                w, f = (step[last, s], step_power[last, s]) if i else (initial[s], initial_power[s])
                v[s], e[s] = _normal(w * value[i, s], f + power[i, s])
            last, at = _choose(v, e, m, order, sums, scales, words, at)
            if last < 0:
                return j, used
            out[j, i] = last
        used = at
    return k, used


@kernel()
def tree_sums(value: Vector, power: Ints) -> None:
    """Fill in the inner nodes of a binary tree, node k having the children 2 k and 2 k + 1."""
    for k in range(value.shape[0] // 2 - 1, 0, -1):
        value[k], power[k] = _plus(value[2 * k], power[2 * k], value[2 * k + 1], power[2 * k + 1])


@kernel()
def tree_draws(value: Vector, power: Ints, words: Words, out: Ints) -> tuple[int, int]:
    """Draw leaves of a binary tree in proportion to their weights; see tree_sums."""
    leaves, used = value.shape[0] // 2, 0
    for j in range(out.shape[0]):
        at, node = used, 1
        while node < leaves:
            small, large = 2 * node, 2 * node + 1
            swap = power[large] < power[small] or (
                power[large] == power[small] and value[large] < value[small]
            )
            if value[large] == 0.0 or (value[small] > 0.0 and swap):
                small, large = large, small
            w, f = _normal(value[small] / value[node], power[small] - power[node])
            side, at = _coin(w, f, words, at)
            if side < 0:
                return j, used
            node = small if side == 1 else large
        used, out[j] = at, node - leaves
    return out.shape[0], used


@kernel()
def shuffle_segments(items: IntMatrix, ends: IntMatrix, words: Words) -> tuple[int, int]:
    """Put every segment of every row of ``items`` in random order; all orders equally likely.

    ``ends[j]`` are the ends of row j's segments. An index below c comes from 32 bits, by Lemire's
    product, drawn again if it would not be uniform.
    """
    used = 0
    row = np.empty(items.shape[1], np.int64)
    for j in range(items.shape[0]):
        at, start = used, 0
        copy(items[j], row)
        for end in ends[j]:
            for left in range(end - start, 1, -1):
                size = uint64(left)
                while True:
                    if at == words.shape[0]:
                        return j, used
                    product = (words[at] >> uint64(32)) * size
                    at += 1
                    low = product & uint64(0xFFFFFFFF)
                    if low >= size or low >= uint64(0x100000000 - left) % size:
                        break
                a, b = start + left - 1, start + np.int64(product >> uint64(32))
                row[a], row[b] = row[b], row[a]
            start = end
        used = at
        copy(row, items[j])
    return items.shape[0], used
