"""The exact optimum at all levels: closed forms between break points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._drawing.results import pieces as draw_pieces
from fastpriv.design.exact.arithmetic import exp_bounds, level_bounds, ratio_below, simplest
from fastpriv.design.exact.pieces import Basis, End, Root, evaluate, polynomial, reach, step_over
from fastpriv.design.exact.point import least_ratio, vertex_at
from fastpriv.design.exact.program import IntegerProgram, programs_of
from fastpriv.design.exact.simplex import Ray, Simplex, hamming_rays
from fastpriv.errors import InvalidInput, SolverFailure, TooLarge, described
from fastpriv.notions.registry import COMPARED, NOTIONS
from fastpriv.priors import Distribution, Product
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ExactCurve", "ExactPiece", "exact_curve", "hamming_threshold"]

#: Most pieces of a curve.
_MOST_PIECES = 10_000
#: Start of the search, as a share of the range of ratios.
_START = Fraction(1, 2**12)
#: Relative distance beyond a break point at which the next piece is searched for.
_STEPS = [Fraction(1, 2**k) for k in (40, 60, 80)]
Coefficients = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ExactPiece:
    """One closed form of the curve, and the levels at which it holds.

    Attributes
    ----------
    low, high : float
        Lower and upper level of the piece, rounded to the nearest float in the isolating interval.
    numerator, denominator : tuple of int
        Coefficients of 1, a, a^2, ... with a = e^epsilon; the quotient is the minimum distortion.
    pattern : frozenset
        The rays in use, ``(record distribution, output type, powers)``. The first two numbers index
        the programs (one unless records are independent) and their outputs.
    ratios : pair of pairs of Fraction
        Rational numbers around e^low and around e^high, without another break point inside.

    Examples
    --------
    >>> import fastpriv as fp
    >>> piece = fp.exact_curve([0.75, 0.25], 1.2, 2.0).pieces[0]
    >>> piece.numerator, piece.denominator  # 1/(1 + a)
    ((1,), (1, 1))
    """

    low: float
    high: float
    numerator: Coefficients
    denominator: Coefficients
    pattern: frozenset[tuple[int, int, tuple[int, ...]]]
    ratios: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]

    def at(self, ratio: Fraction) -> Fraction:
        """Return the closed form at a rational ratio."""
        top, bottom = (evaluate(polynomial(c), ratio) for c in (self.numerator, self.denominator))
        return top / bottom

    def to_latex(self) -> str:
        """Return the closed form as a LaTeX fraction in a."""
        return rf"\frac{{{_latex(self.numerator)}}}{{{_latex(self.denominator)}}}"

    def __repr__(self) -> str:
        degrees = len(self.numerator) - 1, len(self.denominator) - 1
        return f"ExactPiece({self.low:.10g} to {self.high:.10g}, degrees {degrees})"


@dataclass(frozen=True, eq=False, repr=False)
class ExactCurve:
    """Minimum distortion as a function of the level: a quotient of polynomials on every piece.

    Attributes
    ----------
    prior : Distribution
        The prior of the curve.
    notion : {"dp", "identifiability"}
        The program of the curve.
    pieces : tuple of ExactPiece
        Pieces from the lowest level to the highest; each ends where the next begins.
    least : Fraction
        The largest ratio of neighbours under the prior, a lower bound for identifiability; 1 for
        differential privacy.

    Examples
    --------
    >>> import fastpriv as fp
    >>> curve = fp.exact_curve([0.75, 0.25], 0.0, 2.0)
    >>> curve
    ExactCurve(2 pieces from 0 to 2, notion='dp')
    >>> [(piece.numerator, piece.denominator) for piece in curve.pieces]
    [((1,), (4,)), ((1,), (1, 1))]
    >>> round(curve.pieces[0].high, 10)  # ln 3: from there on 1/(1 + e^epsilon)
    1.0986122887
    """

    prior: Distribution
    notion: str
    pieces: tuple[ExactPiece, ...]
    least: Fraction

    @property
    def breaks(self) -> list[float]:
        """Levels at which the closed form changes."""
        return [piece.high for piece in self.pieces[:-1]]

    def value(self, epsilon: float) -> Fraction:
        """Return the minimum distortion at the rational ratio just below e^epsilon.

        It equals the value of the exact program at that level.
        """
        low, high = self.pieces[0].low, self.pieces[-1].high
        epsilon = check.real(epsilon, "epsilon", low, high)
        ratio = ratio_below(epsilon, self.least) if epsilon else Fraction(1)
        for piece in self.pieces:
            if ratio <= piece.ratios[1][0]:
                break
        return piece.at(ratio)

    def plot(self, ax: Axes | None = None, *, legend: bool | str = True) -> Axes:
        """Draw the curve with its break points; see :func:`fastpriv.plot.exact`."""
        return draw_pieces(
            self.pieces, NOTIONS[self.notion].title, COMPARED.index(self.notion), ax, legend
        )

    def to_latex(self) -> str:
        """Return the curve as LaTeX cases, with a for e^epsilon.

        Break points are written to six digits; ``pieces`` has all digits.
        """
        star = "d" if self.notion == "dp" else "i"
        lines = [
            rf"{piece.to_latex()}, & {piece.low:.6g} \le \epsilon \le {piece.high:.6g}"
            for piece in self.pieces
        ]
        body = " \\\\\n".join(lines)
        return f"D_{star}^*(\\epsilon) = \\begin{{cases}}\n{body}\n\\end{{cases}}"

    def __repr__(self) -> str:
        count = len(self.pieces)
        return (
            f"ExactCurve({count} piece{'s' * (count > 1)} from {self.pieces[0].low:.6g} to "
            f"{self.pieces[-1].high:.6g}, notion={self.notion!r})"
        )


def exact_curve(
    prior: Distribution | ArrayLike, low: float, high: float, notion: str = "dp"
) -> ExactCurve:
    """Return the minimum distortion at every level between two, in closed form.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.
    low, high : float
        Range of levels, in nats. For identifiability, ``low`` is at least ``prior.epsilon_x()``.
    notion : {"dp", "identifiability"}
        The program to solve.

    Returns
    -------
    ExactCurve
        Pieces with integer coefficients in e^epsilon, and algebraic break points.

    Notes
    -----
    On one pattern the scales and the multipliers of a vertex are quotients of polynomials in
    e^epsilon. The pattern stays optimal until one of them changes its sign. That root is a break
    point, at which the exact simplex method continues. Every sign is decided exactly, so the curve
    is proved. Needs python-flint. Cost per piece: one system of T equations in polynomials of
    degree T n, T the number of types of databases; meant for T up to some 20.

    Examples
    --------
    >>> import fastpriv as fp
    >>> curve = fp.exact_curve(fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2]), 0.0, 1.0)
    >>> [round(level, 4) for level in curve.breaks]
    [0.2728, 0.3365, 0.3922, 0.4189]
    >>> float(curve.value(0.9)) == float(fp.solve_pd_dp(curve.prior, 0.9, exact=True).value)
    True
    """
    prior = as_prior(prior)
    low, high = (check.real(v, name, least=0.0) for v, name in ((low, "low"), (high, "high")))
    check.word(notion, "notion", ("dp", "identifiability"))
    if not low < high:
        raise InvalidInput(f"low must be below high; got {described(low)} and {described(high)}.")
    joint = notion == "identifiability"
    _, programs = programs_of(prior, joint)
    least = least_ratio(prior, programs, low) if joint else Fraction(1)
    start = ratio_below(low, least)
    end = simplest(exp_bounds(high)[1], exp_bounds(high)[1] * (1 + Fraction(1, 10**15)))
    tracks = [_track(program, start, end) for program in programs]
    pieces = _joined(prior, tracks, low, high)
    return ExactCurve(prior, notion, pieces, least)


@dataclass(frozen=True)
class _Stretch:
    """One basis and the ratios between which it is optimal."""

    basis: Basis
    low: End
    high: End


def _track(program: IntegerProgram, start: Fraction, end: Fraction) -> list[_Stretch]:
    """Cover the ratios between two rational numbers by optimal bases of one program."""
    if program.size == 1:
        basis = Basis(program, [Ray(0, (0,))])
        return [_Stretch(basis, End(None, start), End(None, end))]
    at = simplest(start + (end - start) * _START / 2, start + (end - start) * _START)
    first = vertex_at(program, at, level_bounds(at)[0], known=False).rays
    up = _walk(program, first, at, end, up=True)
    down = _walk(program, first, at, start, up=False)
    middle = _Stretch(up[0].basis, down[0].low, up[0].high)
    return [*reversed(down[1:]), middle, *up[1:]]


def _walk(
    program: IntegerProgram, rays: Sequence[Ray], at: Fraction, limit: Fraction, up: bool
) -> list[_Stretch]:
    """Follow the optimum from one ratio to another, from break point to break point."""
    stretches: list[_Stretch] = []
    basis, near = Basis(program, rays), End(None, at)
    while len(stretches) < _MOST_PIECES:
        end = reach(basis, at, limit, up)
        if end is None:
            raise SolverFailure(
                f"no exact piece of the curve was found at ratio {at}. Ask for the point alone: "
                "solve(..., exact=True)."
            )
        stretches.append(_Stretch(basis, near, end) if up else _Stretch(basis, end, near))
        following = None if end.root is None else _beyond(basis, end.root, limit, up)
        if following is None:
            return stretches
        (basis, at), near = following, end
    raise SolverFailure(
        f"the curve has more than {_MOST_PIECES:,} pieces. Ask for a shorter range of epsilon."
    )


def _beyond(basis: Basis, root: Root, limit: Fraction, up: bool) -> tuple[Basis, Fraction] | None:
    """Return the basis that is optimal after a break point, and a ratio at which it is optimal.

    It is proved back to the break point itself. Several distances are tried, because a rounded
    prior may separate break points by 1e-16. None if the limit is reached.
    """
    for step in _STEPS:
        at = step_over(root, up, limit, step)
        if at is None:
            return None
        other = Basis(basis.program, Simplex(basis.program, at, basis.rays).optimum().rays)
        back = reach(other, at, root.low if up else root.high, not up)
        if back is not None and (back.root is None or back.root.same(root)):
            return other, at
    raise SolverFailure(
        "two break points of the curve are too close to separate near ratio "
        f"{described(float(root.low))}. Ask for a range of epsilon without it."
    )


def _joined(
    prior: Distribution, tracks: Sequence[list[_Stretch]], low: float, high: float
) -> tuple[ExactPiece, ...]:
    """Add the curves of the programs, on the common refinement of their pieces."""
    counts = prior.multiplicities().tolist() if isinstance(prior, Product) else [1]
    places = [0] * len(tracks)
    pieces: list[ExactPiece] = []
    near = tracks[0][0].low.bounds
    level = low
    while True:
        now = [track[place] for track, place in zip(tracks, places, strict=True)]
        first = min(now, key=lambda stretch: stretch.high.bounds[1])
        last = all(place == len(track) - 1 for track, place in zip(tracks, places, strict=True))
        far = first.high.bounds
        top, bottom = polynomial([0]), polynomial([1])
        for count, stretch in zip(counts, now, strict=True):
            p, q = stretch.basis.value
            top, bottom = top * q + count * p * bottom, bottom * q
        common = top.gcd(bottom)
        common = common if int(bottom.coeffs()[-1]) > 0 else -common
        end = high if last else level_bounds((far[0] + far[1]) / 2)[0]
        pattern = frozenset(
            (k, ray.output, ray.pattern)
            for k, stretch in enumerate(now)
            for ray in stretch.basis.live()
        )
        numerator, denominator = (
            tuple(map(int, q.coeffs())) or (0,) for q in (top // common, bottom // common)
        )
        pieces.append(ExactPiece(level, end, numerator, denominator, pattern, (near, far)))
        if last:
            return tuple(_merged(pieces))
        for k, stretch in enumerate(now):
            if _same_end(stretch.high, first.high):
                places[k] += 1
        near, level = far, end


def _same_end(a: End, b: End) -> bool:
    if a is b:
        return True
    return a.root is not None and b.root is not None and a.root.same(b.root)


def _merged(pieces: Sequence[ExactPiece]) -> list[ExactPiece]:
    """Join adjacent pieces with the same pattern, which differ only in the proof."""
    joined: list[ExactPiece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and last.pattern == piece.pattern:
            joined[-1] = ExactPiece(
                last.low,
                piece.high,
                piece.numerator,
                piece.denominator,
                piece.pattern,
                (last.ratios[0], piece.ratios[1]),
            )
        else:
            joined.append(piece)
    return joined


def _latex(coefficients: Sequence[int]) -> str:
    """Write a polynomial in a, the highest power first."""
    words: list[str] = []
    for k in range(len(coefficients) - 1, -1, -1):
        c = coefficients[k]
        if not c:
            continue
        sign = "-" if c < 0 else "+" if words else ""
        power = "" if k == 0 else "a" if k == 1 else f"a^{{{k}}}"
        number = "" if abs(c) == 1 and power else str(abs(c))
        words.append(f"{sign} {number}{power}" if words else f"{sign}{number}{power}")
    return " ".join(words) or "0"


#: Largest prior whose vector is used for a lower bound.
_MAX_DENSE = 1 << 20


def hamming_threshold(prior: Distribution | ArrayLike) -> Bracket:
    """Return the level from which randomised response solves PD-DP, exactly.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases; a vector is the distribution of one record.

    Returns
    -------
    Bracket
        From ``upper`` on, randomised response is optimal; at ``lower`` it is not (unless that is
        0). The bounds are some 1e-12 apart if the exact programs can be solved. Otherwise ``upper``
        is ``prior.epsilon_hat()`` and ``lower`` is a necessary condition.

    Notes
    -----
    ``prior.epsilon_hat()`` is sufficient, and exact for independent records. For dependent records
    the threshold is lower. Randomised response has one dual candidate. It is optimal if its
    supplies can be routed away from every output. The flows are polynomials in e^epsilon, followed
    down from ``epsilon_hat`` to the first that changes its sign. Needs python-flint; the cost is
    the cost of one piece of :func:`fastpriv.exact_curve`.

    Necessary: e^epsilon >= mean over records of 1/p(x_i | x_-i) - m_i + 1, for every database x.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    >>> f"{prior.epsilon_hat():.4f} {fp.hamming_threshold(prior):i.4f}"
    '0.4643 [0.4188, 0.4189]'
    """
    prior = as_prior(prior)
    enough = prior.epsilon_hat()
    if isinstance(prior, Product) or enough in (0.0, math.inf):
        return Bracket(enough, enough)
    try:
        _, (program,) = programs_of(prior, joint=False)
        above = exp_bounds(enough)[1]
        start = simplest(above, above * (1 + Fraction(1, 10**9)))
        basis = Basis(program, hamming_rays(program))
        end = reach(basis, start, Fraction(1), up=False)
    except TooLarge:
        return Bracket(_necessary(prior), enough)
    if end is None:
        return Bracket(_necessary(prior), enough)
    if end.root is None:
        return Bracket(0.0, 0.0)
    below = step_over(end.root, up=False, limit=Fraction(1))
    fails = below is not None and not basis.optimal(below)
    least = level_bounds(below)[0] if below is not None and fails else 0.0
    return Bracket(least, min(end.above, enough))


def _necessary(prior: Distribution) -> float:
    """Return a lower bound on the threshold of randomised response. Cost O(N n).

    A database x differs from some y in every record. No arc away from y leaves x, so its net flow
    must be non-negative: the sum over records of (e^epsilon + m_i - 1) p(x) less the sum of p along
    record i.
    """
    sizes = prior.space.sizes
    if prior.space.size > _MAX_DENSE or min(sizes) < 2:
        return 0.0
    cube = prior.as_dense("the threshold", _MAX_DENSE).probabilities().reshape(sizes)
    sums = sum(cube.sum(axis=i, keepdims=True) for i in range(len(sizes)))
    needed = float((sums / cube).max()) / len(sizes) - float(np.mean(sizes)) + 1.0
    error = roundoff(64 * len(sizes) * max(sizes))
    return max(0.0, math.log(needed) - error) if needed > 1.0 else 0.0
