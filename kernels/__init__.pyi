"""Types of the compiled boundary: mapped packages are invisible to mypy in editable installs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Codes = NDArray[np.unsignedinteger[Any]]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Shorts = NDArray[np.int32]

SIGNATURES: dict[str, list[str]]

# balance
def entropy_bound(
    z: Floats,
    held: int,
    mu: float,
    E: Floats,
    r: Floats,
    count: Floats,
    edges: Ints,
    theta: Floats,
    lines: Floats,
    B: Floats,
    rough: Floats,
    b: float,
    floor: float,
    reach: float,
    p: Floats,
) -> float: ...
def widest_edge(
    p: Floats, B: Floats, corners: Floats, heights: Floats, r: Floats, least: float
) -> tuple[float, int, int]: ...

# capacity
def are_channels(W: Floats, off: float) -> bool: ...
def capacities(
    W: Floats, gap: float, start: int, stop: int, lower: Floats, upper: Floats, law: Floats
) -> None: ...
def divergence(w: float, q: float, diff: float) -> float: ...
def output_law(W: Floats, p: Floats, q: Floats, c: Floats) -> float: ...
def row_divergences(
    W: Floats, q: Floats, c: Floats, start: int, stop: int, out: Floats
) -> float: ...
def two_row_capacities(
    W: Floats, gap: float, start: int, stop: int, lower: Floats, upper: Floats, law: Floats
) -> None: ...

# climb
def entropy_climb(
    p: Floats,
    E: Floats,
    r: Floats,
    count: Floats,
    edges: Ints,
    b: float,
    steps: int,
    tiny: float,
) -> float: ...

# cone
def cone_adjoint(
    weight: Floats, source: Ints, target: Ints, ratio: Floats, growth: float, out: Floats
) -> None: ...
def cone_ceiling(
    v: Floats, source: Ints, target: Ints, ratio: Floats, grow: float, sweeps: int
) -> None: ...
def cone_closure(v: Floats, source: Ints, target: Ints, shrink: float, sweeps: int) -> bool: ...
def cone_factor(
    diagonal_weight: Floats,
    source: Ints,
    target: Ints,
    ratio: Floats,
    growth: float,
    row: Ints,
    starts: Ints,
    edges: Ints,
    bands: Ints,
    places: Ints,
    first: int,
    last: int,
    factors: Floats,
    scales: Floats,
    schur: Floats,
) -> None: ...
def cone_slack(
    v: Floats, source: Ints, target: Ints, ratio: Floats, growth: float, out: Floats
) -> None: ...
def cone_solve(
    rhs: Floats,
    starts: Ints,
    bands: Ints,
    places: Ints,
    factors: Floats,
    scales: Floats,
    first: int,
    last: int,
    out: Floats,
) -> None: ...

# correlation
def reflected(mirrors: Floats, z: Floats) -> None: ...
def tridiagonal(A: Floats) -> tuple[Floats, Floats, Floats]: ...
def net_contraction(n: int, m: int, epsilon: float) -> float: ...
def pair_contractions(
    W: Floats,
    left: Ints,
    right: Ints,
    floor: float,
    start: int,
    stop: int,
    lower: Floats,
    upper: Floats,
    weight: Floats,
) -> tuple[float, float]: ...

# descent
def add_line_sums(
    v: Floats,
    out: Floats,
    weights: Floats,
    strides: Ints,
    sizes: Ints,
    block: int,
    start: int,
    stop: int,
) -> None: ...
def descend(
    t: Floats,
    r: Floats,
    direction: Floats,
    product: Floats,
    inverse: Floats,
    step: float,
    start: int,
    stop: int,
) -> float: ...
def finish_product(
    out: Floats, scale: Floats, shift: Floats, t: Floats, start: int, stop: int
) -> float: ...
def multiply(a: Floats, b: Floats, out: Floats, start: int, stop: int) -> None: ...
def turn(
    direction: Floats, r: Floats, inverse: Floats, keep: float, start: int, stop: int
) -> None: ...

# hockey_stick
def largest_excess(laws: Floats, pairs: Ints, slopes: Floats, start: int, stop: int) -> Floats: ...
def least_slope(
    laws: Floats, pairs: Ints, delta: float, slope: float, start: int, stop: int
) -> float: ...

# information
def divergence_columns(
    W: Floats, p: Floats, ref: Floats, shift: Floats, start: int, stop: int
) -> Floats: ...
def entropy(p: Floats) -> float: ...
def entropy_range(p: Floats, start: int, stop: int) -> float: ...
def factor_information(joint: Floats, W: Floats) -> float: ...
def information_rows(
    W: Floats, p: Floats, ref: Floats, shift: Floats, start: int, stop: int
) -> float: ...
def mutual_information(W: Floats, p: Floats) -> float: ...
def shift_rows(W: Floats, p: Floats, ref: Floats, start: int, stop: int) -> Floats: ...
def symmetric_information(joint: Floats, off: float, gap: float) -> float: ...

# leakage
def binomial_product(
    n1: int,
    a0: float,
    a1: float,
    n2: int,
    b0: float,
    b1: float,
    n: int,
    forced: int,
    first: float,
    last: float,
) -> Floats: ...
def chain_log_best(
    initial: Floats, transition: Floats, log_near: Floats, assignment: Ints, rows: Ints
) -> float: ...
def chain_log_mass(
    initial: Floats, transition: Floats, near: Floats, loss: Floats, assignment: Ints, rows: Ints
) -> float: ...
def chain_log_sum(
    log_initial: Floats, log_back: Floats, log_near: Floats, assignment: Ints, rows: Ints
) -> tuple[float, float]: ...
def column_extremes(W: Floats, start: int, stop: int) -> Floats: ...
def column_gaps(
    W: Floats, p: Floats, most: Floats, least: Floats, rows: Ints, start: int, stop: int
) -> Floats: ...
def column_summary(W: Floats, p: Floats, rows: Ints, start: int, stop: int) -> Floats: ...

# lines
def any_below(values: Floats, bounds: Floats, scale: float) -> bool: ...
def axis_closure(v: Floats, move: float, inner: int, m: int) -> None: ...
def axis_log_ratios(
    pmf: Floats, inner: int, m: int, start: int, stop: int, worst: Floats
) -> None: ...
def axis_spreads(
    pmf: Floats, scale: float, inner: int, m: int, start: int, stop: int
) -> tuple[float, float]: ...
def hamming_cost(matrix: Floats, prior: Floats, rows: Ints) -> float: ...
def matrix_spread(
    matrix: Floats, shift: float, scale: float, axes: Ints, first: int, last: int
) -> float: ...

# mapping
def mapping_direction(
    A: Floats,
    p: Floats,
    d: Floats,
    allowed: Floats,
    budget: float,
    V: Floats,
    Z: Floats,
    r: Floats,
    j: Floats,
    prices: Floats,
    mu: Floats,
    slope: float,
    t: float,
    K: Floats,
    e: Floats,
    few: bool,
    gram: Floats,
) -> tuple[Floats, Floats, Floats, Floats, float, float, float]: ...
def mapping_factor(
    A: Floats,
    r: Floats,
    j: Floats,
    e: Floats,
    few: bool,
    first: int,
    last: int,
    K: Floats,
    gram: Floats,
) -> bool: ...

# markov
def hidden_markov_log_prob(
    initial: Floats, transition: Floats, emissions: Floats, assignment: Ints, rows: Ints
) -> Floats: ...
def markov_best_path(log_initial: Floats, log_transition: Floats, n: int) -> float: ...
def markov_counts(initial: Floats, transition: Floats, rows: Ints) -> Floats: ...
def markov_paths(initial_edges: Floats, transition_edges: Floats, draws: Floats) -> Ints: ...

# metric
def metric_adjoint(
    weight: Floats, bound: Floats, starts: Ints, source: Shorts, target: Shorts, out: Floats
) -> None: ...
def metric_closure(v: Floats, shrink: Floats, first: int, last: int, out: Floats) -> None: ...
def metric_level(logs: Floats, distance: Floats, first: int, last: int) -> float: ...
def metric_nearest(
    v: Floats, bound: Floats, member: Bools, limit: float, first: int, last: int, out: Shorts
) -> None: ...
def metric_normal(
    weight: Floats, bound: Floats, source: Shorts, target: Shorts, out: Floats
) -> None: ...
def metric_reach(v: Floats, dv: Floats, bound: Floats, first: int, last: int) -> float: ...
def metric_slack(
    v: Floats, bound: Floats, starts: Ints, source: Shorts, target: Shorts, out: Floats
) -> None: ...
def metric_spanner(distance: Floats, tolerance: float, keep: Bools) -> None: ...

# noise
def draw_noise(
    words: NDArray[np.uint64],
    at: int,
    p: float,
    rate: float,
    unit: float,
    low: int,
    high: int,
    slots: NDArray[np.uint8],
    scale: Floats,
    sure: Floats,
    width: int,
    reach: int,
    out: Ints,
    filled: int,
) -> tuple[int, int, bool]: ...
def tilted_sums(n: int, odds: float, decay: float, out: Floats) -> None: ...

# posterior
def posterior_bound(
    low: Floats,
    high: Floats,
    z: Floats,
    W: Floats,
    count: Floats,
    edges: Ints,
    least: Floats,
    most: Floats,
    b: float,
    floor: float,
    reach: float,
    p: Floats,
) -> tuple[float, int, float]: ...

# records
def number_records(
    text: Bytes, begin: int, slots: Ints, edges: Ints, known: Bytes, numbers: Ints, count: int
) -> tuple[int, int, int]: ...
def remember_record(slots: Ints, edges: Ints, known: Bytes, k: int) -> None: ...
def spell_records(numbers: Ints, edges: Ints, known: Bytes, out: Bytes) -> None: ...

# sampling
def chain_draws(
    initial: Floats,
    initial_power: Ints,
    step: Floats,
    step_power: Ints,
    rows: Ints,
    tilt: float,
    tilt_power: int,
    words: Words,
    out: Ints,
) -> tuple[int, int]: ...
def guide_tables(
    weights: Words, last: Ints, shift: int, edges: Words, guide: NDArray[np.int32]
) -> None: ...
def integer_weights(laws: Floats, weights: Words, last: Ints) -> None: ...
def look_up(
    codes: Codes,
    words: Words,
    edges: Words,
    last: Ints,
    guide: NDArray[np.int32],
    shift: int,
    out: Codes,
) -> None: ...
def shuffle_segments(items: Ints, ends: Ints, words: Words) -> tuple[int, int]: ...
def state_draws(
    value: Floats,
    power: Ints,
    starts: Ints,
    factors: Ints,
    jumps: Ints,
    sizes: Ints,
    x: Ints,
    tilt: float,
    tilt_power: int,
    words: Words,
    out: Ints,
) -> tuple[int, int]: ...
def state_sums(
    value: Floats,
    power: Ints,
    starts: Ints,
    factors: Ints,
    jumps: Ints,
    sizes: Ints,
    x: Ints,
    tilt: float,
    tilt_power: int,
) -> None: ...
def step_by_cells(
    codes: Codes, cells: Codes, steps: Codes, m: int, out: Codes, ties: Ints
) -> int: ...
def step_by_words(
    codes: Codes,
    places: Ints,
    words: Words,
    m: int,
    stay: np.uint64,
    move: np.uint64,
    final: np.uint64,
    out: Codes,
) -> int: ...
def tree_draws(value: Floats, power: Ints, words: Words, out: Ints) -> tuple[int, int]: ...
def tree_sums(value: Floats, power: Ints) -> None: ...

# selection
def negative_entropies(W: Floats, start: int, stop: int, out: Floats) -> None: ...
def pair_bounds(W: Floats, left: Ints, right: Ints, start: int, stop: int, out: Floats) -> None: ...
def row_distances(
    W: Floats, rows: Ints, center: int, start: int, stop: int, out: Floats
) -> None: ...
def row_dots(W: Floats, rows: Ints, v: Floats, start: int, stop: int, out: Floats) -> None: ...
def sharp_pair_bounds(
    W: Floats, left: Ints, right: Ints, start: int, stop: int, out: Floats
) -> None: ...

# shells
def fill_shell(center: int, delta: Ints, start: Ints, choice: Ints, out: Ints) -> int: ...
def shell_masses(
    pmf: Floats, outer_distance: Ints, inner_distance: Ints, profile: Floats
) -> None: ...

# tails
def characteristic_powers(
    at: Ints,
    masses: Floats,
    starts: Ints,
    counts: Floats,
    units: Floats,
    halves: Floats,
    wholes: Floats,
    out: Floats,
) -> None: ...
def tail_tables(
    losses: Floats, rests: Floats, masses: Floats, s: float, both: Floats, above: Floats
) -> None: ...
def tail_excess(
    shifts: Floats,
    weights: Floats,
    losses: Floats,
    rests: Floats,
    both: Floats,
    above: Floats,
    s: float,
    t: float,
) -> float: ...

# transform
def contiguous(
    v: Floats,
    c: Floats,
    steps: Ints,
    high: int,
    length: int,
    tail: int,
    group: int,
    start: int,
    end: int,
) -> None: ...
def strided(
    v: Floats, c: Floats, steps: Ints, rows: int, stride: int, cols: int, start: int, end: int
) -> None: ...

# type_forms
def multiply_linear(poly: Floats, form: Floats, strides: Ints, out: Floats) -> None: ...
def substitute_pair(
    coefficients: Floats, first: Floats, second: Floats, degree: int, strides: Ints, size: int
) -> Floats: ...
