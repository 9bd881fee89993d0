"""Privacy profiles of randomised response against 80-digit sums over all losses."""

import math

import pytest
from mpmath import mp, mpf

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from oracles import profile as op
from profile_cases import holds, response


# theory.md's 80-digit values of 4-ary randomised response at 0.5, and one of ours at a million.
@pytest.mark.parametrize(
    ("k", "delta", "epsilon"),
    [
        (100, 1e-6, 23.4674670330556),
        (100, 1e-14, 33.1864818604555),
        (1000, 1e-6, 124.340019018036),
        (1000, 1e-14, 157.682916784456),
    ],
)
def test_reference_values(k, delta, epsilon):
    found = response(4, 0.5).self_compose(k).epsilon(delta)
    assert found.midpoint == pytest.approx(epsilon, rel=1e-14)
    holds(found, op.response_epsilon(4, 0.5, k, delta), 1e-9)


@pytest.mark.grid(every=11)
@pytest.mark.parametrize("m", [2, 3, 4, 1000])
@pytest.mark.parametrize("eps", [1e-8, 0.01, 0.5, 3.0, 40.0, 700.0])
@pytest.mark.parametrize("k", [1, 2, 7, 300])
def test_response_lattice(m, eps, k):
    profile = response(m, eps).self_compose(k)
    pairs = [(mpf(eps) * g, q) for g, q in op.composed_response(m, eps, k)]
    for delta in (1e-300, 1e-100, 1e-14, 1e-6, 0.01, 0.3, 0.9):
        found = profile.epsilon(delta)
        holds(found, op.epsilon_of(pairs, mpf(delta)), 1e-9)
    for share in (0.0, 0.01, 0.2, 0.5, 0.77, 0.99):
        t = share * k * eps
        truth = op.delta_of(pairs, t)
        found = profile.delta(t)
        holds(found, truth, 1e-9 if truth > 1e-300 else None)
    assert profile.delta(k * eps * (1 + 1e-15)) == fp.Bracket(0.0, 0.0)


def test_a_million_releases():
    profile = response(4, 0.5).self_compose(10**6)
    # Computed once with the recurrence in 80 digits.
    for delta, epsilon in REFERENCE:
        holds(profile.epsilon(delta), mpf(epsilon), 1e-9)
    for level in profile.epsilon([delta for delta, _ in REFERENCE]).upper:
        found = profile.delta(level)
        assert found.width <= 1e-9 * found.upper


REFERENCE = [
    (1e-300, "83493.98059472924788816081732073879433356"),
    (1e-100, "77657.18125163380287503920888383332099706"),
    (1e-14, "72610.041320904383448780341764286115153"),
    (1e-3, "70919.25777406593347401596281947945095007"),
]


@pytest.mark.parametrize(
    ("m", "eps", "k"), [(10**5, 0.36, 18), (10**5, 5e-7, 18), (10**9, 2.0, 40)]
)
def test_rare_large_losses(m, eps, k):
    """Losses that hardly ever occur ask for a large tilt."""
    profile = response(m, eps).self_compose(k)
    pairs = [(mpf(eps) * g, q) for g, q in op.composed_response(m, eps, k)]
    for share in (0.0, 0.05, 0.3, 0.65, 0.9):
        truth = op.delta_of(pairs, share * k * eps)
        holds(profile.delta(share * k * eps), truth, 1e-9 if truth > 1e-300 else None)
    for delta in (1e-290, 1e-60, 1e-9):
        holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-9)


def test_what_underflows_is_not_zero():
    found = response(10**5, 7e-5).self_compose(1000).delta(0.0699)  # about 1e-5000
    assert found.lower == 0.0 < found.upper < 1e-300


@pytest.mark.parametrize(
    "mixture",
    [
        [(2, 0.5, 20), (4, 0.3, 15)],
        [(3, 1.0, 12), (2, 0.5, 12)],
        [(2, 0.1, 6), (2, 0.25, 5), (5, 1.7, 4)],
        [(2, 1e-6, 20), (2, 5.0, 3)],
    ],
    ids=str,
)
def test_mixtures_of_epsilons(mixture):
    profile = response(2, 0.0)
    laws = []
    for m, eps, k in mixture:
        profile = profile.compose(response(m, eps).self_compose(k))
        laws.append(op.power_law(op.response_law(m, eps), k))
    pairs = op.convolved(laws)
    top = sum(eps * k for _, eps, k in mixture)
    for delta in (1e-200, 1e-14, 1e-6, 0.01, 0.4):
        holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-9)
    for share in (0.0, 0.1, 0.5, 0.9):
        holds(profile.delta(share * top), op.delta_of(pairs, share * top), 1e-9)


@pytest.mark.parametrize("tiny", [1e-290, 1e-100, 1e-30, 1e-16, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("k", [1, 20])
def test_a_tiny_epsilon_beside_a_large_one(tiny, k):
    """The tilt that suits the tiny one makes all terms of the other underflow: no zero delta."""
    profile = response(2, 0.5).compose(response(2, tiny).self_compose(k))
    laws = [op.response_law(2, 0.5), op.power_law(op.response_law(2, tiny), k)]
    with mp.workdps(400):
        pairs = op.convolved(laws)
        for delta in (1e-9, 1e-6, 1e-3):
            holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-6)
        for t in (0.0, 0.25, 0.49999):
            holds(profile.delta(t), op.delta_of(pairs, t), 1e-6)


def test_tilting_again_until_it_helps_no_more():
    mixture = [(1000, 0.5, 20), (3, 1e-9, 1), (10**6, 378.0, 2)]
    profile = response(2, 0.0).compose(*(response(m, e).self_compose(k) for m, e, k in mixture))
    pairs = op.convolved([op.power_law(op.response_law(m, e), k) for m, e, k in mixture])
    holds(profile.epsilon(2e-135), op.epsilon_of(pairs, mpf(2e-135)), 1e-9)


@pytest.mark.slow
def test_totals_do_not_grow():
    """A lower bound of total 1 + 6e-16 would be 1 + 2e-11 after 30,000 releases."""
    excess = 1e-4
    matrix = fp.Channel([[0.5 + excess, 0.5 - excess], [0.5 - excess, 0.5 + excess]]).matrix()
    (atom,) = PrivacyProfile.of(matrix).parts
    for measure, sign in ((atom.lower, -1), (atom.upper, 1)):
        total = sum(mp.exp(mpf(str(x))) for x in measure.logs) + mpf(measure.infinite)
        assert sign * (total - 1) >= -len(measure.logs) * mpf(2) ** -62
    level = mp.log(mpf(matrix[0, 0]) / mpf(matrix[0, 1]))
    pairs = [(level * g, q) for g, q in op.composed_response(2, level, 30_000)]
    holds(PrivacyProfile.of(matrix).self_compose(30_000).delta(0.0), op.delta_of(pairs, 0), 1e-9)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e10, 1e300, 1.7e308])
def test_levels_beyond_arithmetic(epsilon):
    for m, k in ((1, 5), (2, 1), (3, 3), (3, 1000)):
        profile = response(m, epsilon).self_compose(k)
        for other in (profile, profile.compose(response(2, 0.5))):
            found = other.epsilon(0.0)
            assert found.lower <= min(k * mpf(epsilon), mpf(1.7e308)) * (m > 1) + 1
            assert found.upper >= min(k * mpf(epsilon), mpf(1.7e308)) * (m > 1)
            assert other.delta(0.0).upper >= (0.3 if m > 1 and epsilon > 1 else 0.0)
            assert other.epsilon(1e-6).upper >= (epsilon * (m > 1) > 1) * epsilon
    with pytest.raises(fp.InvalidInput, match="steps of one kind"):
        response(2, 0.5).self_compose(10**400)


def test_one_release_fits_its_own_delta():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 0.3), (0.0, 1e-9), (700.0, 1e-300)):
        one = PrivacyProfile.from_epsilon_delta(epsilon, delta)
        assert one.epsilon(delta) == fp.Bracket(epsilon, epsilon)
        assert one.epsilon(math.nextafter(delta, 0.0)) == fp.Bracket(math.inf, math.inf)
