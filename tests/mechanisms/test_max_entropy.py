"""Maximum-entropy noise: its law to twelve digits, its draws bit by bit, its leakage bound."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
import oracles as o
from fastpriv import kernels
from fastpriv._sampling.power_law import FAR, PowerLaw, Sampler
from fastpriv._sampling.source import Source
from fastpriv.mechanisms import MaxEntropyNoise
from oracles import noise as oracle

POWERS = [0.05, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 4.5, 20.0, 300.0]
SIZES = [1e-6, 0.01, 0.3, 1.0, 2.5, 40.0, 900.0, 5e3, 1e6, 1e11]


class Script(Source):
    """Words that a test wrote down."""

    secure = False

    def __init__(self, words):
        self._words = list(words)

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


def close(found, expected, digits=1e-12):
    return abs(found - expected) <= digits * abs(expected)


def rate_of(noise):
    """Ln B with all its digits."""
    return mpf(noise._law.rate) / mpf(noise._law.unit) ** mpf(noise.p)


@pytest.mark.grid(every=9)
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("distortion", SIZES)
def test_law_against_many_digits(p, distortion):
    noise = MaxEntropyNoise(p, distortion)
    beta = rate_of(noise)
    zero, log_moment, entropy = oracle.max_entropy(p, beta)
    # ln E|Z|^p falls by max(1, beta), roughly, per relative change of beta.
    assert abs(log_moment - mpf(p) * mp.log(distortion)) < 1e-12 * max(1, beta)
    assert close(noise.A, zero)
    assert close(noise.B, mp.exp(beta)) or (math.inf == noise.B and beta > 709)
    assert abs(noise.entropy() - entropy) <= 1e-12 * entropy + 1e-300
    far = min(2**53, int((30 / beta) ** (1 / mpf(p))))
    places = sorted({0, 1, 2, int(distortion) + 1, far // 2, far})
    for k, found in zip(places, noise.pmf(places), strict=True):
        exact = zero * mp.exp(-beta * mpf(k) ** mpf(p))
        assert abs(found - exact) <= 1e-12 * exact + 1e-300, k


@pytest.mark.parametrize("distortion", [1e-300, 1e-9, 0.5, 3.0, 1e5, 1e15, 1e300])
def test_geometric_closed_form(distortion):
    noise = MaxEntropyNoise(1, distortion)
    beta = mp.asinh(1 / mpf(distortion))
    assert close(noise._law.rate / noise._law.unit, beta, 1e-15)
    assert close(noise.A, mp.tanh(beta / 2))
    assert close(noise.entropy(), mp.log1p(2 / mp.expm1(beta)) + mpf(distortion) * beta)


@pytest.mark.parametrize("distortion", [0.4, 1.7, 60.0, 1e4, 1e8])
def test_discrete_gaussian_is_a_theta_function(distortion):
    noise = MaxEntropyNoise(2, distortion)
    beta = mpf(noise._law.rate) / mpf(noise._law.unit) ** 2
    # Poisson summation: theta(beta) = sqrt(pi/beta) theta(pi^2/beta).
    nome = mp.exp(-(mp.pi**2) / beta)
    assert close(1 / noise.A, mp.sqrt(mp.pi / beta) * mp.jtheta(3, 0, nome), 1e-13)


@pytest.mark.parametrize("p", [0.3, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("modulus", [2, 3, 8, 11, 100])
def test_cycle_has_the_largest_entropy_at_its_distortion(p, modulus):
    distances = [oracle.cycle_distance(i, modulus) for i in range(modulus)]
    for distortion in (0.05, 0.4, 1.3):
        noise = MaxEntropyNoise(p, distortion, modulus=modulus)
        law = noise.pmf(np.arange(modulus))
        moment = math.fsum(q * d**p for q, d in zip(law, distances, strict=True))
        uniform = math.fsum(d**p for d in distances) / modulus
        if distortion**p >= uniform:
            np.testing.assert_allclose(law, 1 / modulus, rtol=1e-13)
            continue
        assert close(moment, distortion**p)
        # ln sum exp(-beta d^p) + beta D^p bounds every entropy at this moment, at any beta.
        beta = math.log(noise.B)
        exact = oracle.cycle_law(p, beta, modulus)
        np.testing.assert_allclose(law, [float(q) for q in exact], rtol=1e-12)
        dual = -mp.log(exact[0]) + mpf(beta) * mpf(distortion) ** mpf(p)
        assert close(noise.entropy(), dual)
        assert close(noise.entropy(), o.entropy(exact))


@pytest.mark.parametrize("p", [0.05, 0.3, 1.0, 2.0, 50.0, 500.0])
@pytest.mark.parametrize("modulus", [2, 3, 12, 1001])
def test_cycle_at_the_edge_of_uniform_noise(p, modulus):
    distances = [mpf(oracle.cycle_distance(i, modulus)) for i in range(modulus)]
    norm = float((mp.fsum(d ** mpf(p) for d in distances) / modulus) ** (1 / mpf(p)))
    for factor in (1 - 1e-12, 1 - 2**-53, 1.0, 1 + 1e-15, 1e299 / norm):
        noise = MaxEntropyNoise(p, norm * factor, modulus=modulus)
        np.testing.assert_allclose(noise.pmf(np.arange(modulus)), 1 / modulus, rtol=1e-8)
        assert noise.entropy() == pytest.approx(math.log(modulus), rel=1e-12)
        assert noise.leakage_bound(3.0) < 1e-11
        assert set(noise.sample(30 * modulus, 0) % modulus) == set(range(modulus)) or modulus > 12


def test_cycle_channel_is_measured_by_the_library():
    noise = MaxEntropyNoise(1, 0.8, modulus=6)
    channel = noise.channel()
    law = noise.pmf(np.arange(6))
    np.testing.assert_allclose(channel.matrix()[2], law[(np.arange(6) - 2) % 6])
    # The uniform input is the best one of a cycle: ln k - H(Z) is its capacity.
    assert fp.channel_capacity(channel).lower <= math.log(6) - noise.entropy() + 1e-12
    assert fp.channel_capacity(channel).upper >= math.log(6) - noise.entropy() - 1e-12
    assert close(fp.leakage_capacity(channel), 3 * math.log(noise.B))
    metric = [[min((y - x) % 6, (x - y) % 6) for y in range(6)] for x in range(6)]
    assert close(fp.distortion(channel, fp.Uniform(1, 6), metric), 0.8)
    assert noise.leakage_bound(100.0) == pytest.approx(math.log(6) - noise.entropy(), abs=1e-12)


def test_uniform_and_zero_noise():
    noise = MaxEntropyNoise(math.inf, 3.99)
    assert noise.entropy() == pytest.approx(math.log(7), rel=1e-15)
    assert noise.pmf([-4, -3, 0, 3, 4]) == pytest.approx([0, 1 / 7, 1 / 7, 1 / 7, 0])
    assert noise.B == 1.0
    assert noise.leakage_bound(2.01) == pytest.approx(math.log(13 / 7), rel=1e-14)
    assert set(noise.sample(500).tolist()) == set(range(-3, 4))
    for silent in (MaxEntropyNoise(2, 0.0), MaxEntropyNoise(math.inf, 0.9)):
        assert (silent.A, silent.B, silent.entropy()) == (1.0, math.inf, 0.0)
        assert silent.pmf([0, 1]).tolist() == [1.0, 0.0]
        assert not silent.sample(100).any()
    tiny = MaxEntropyNoise(2, 1e-200)  # its second moment underflows
    assert tiny.A == 1.0
    assert math.inf == tiny.B
    assert MaxEntropyNoise(1, 0.0).leakage_bound(3.0) == pytest.approx(
        MaxEntropyNoise(1, 3.0).entropy(), rel=1e-13
    )
    assert MaxEntropyNoise(3, 2.0, modulus=1).channel().matrix().tolist() == [[1.0]]


@given(
    st.sampled_from([0.5, 1.0, 1.3, 2.0, 3.0]),
    st.floats(0.1, 30),
    st.lists(st.integers(1, 50), min_size=2, max_size=5),
    st.integers(-4, 4),
)
@settings(max_examples=60, deadline=None)
def test_no_signal_leaks_more_than_the_bound(p, distortion, masses, shift):
    noise = MaxEntropyNoise(p, distortion)
    signal = np.array(masses) / sum(masses)
    places = shift + 3 * np.arange(len(masses))
    norm = float((signal @ np.abs(places) ** p) ** (1 / p)) * (1 + 1e-14)
    reach = 1 + int(distortion * (60 * (1 + 1 / p)) ** (1 / p))
    assume(reach < 10**5)
    k = np.arange(-reach - 60, reach + 61)
    output = sum(q * noise.pmf(k - x) for q, x in zip(signal, places, strict=True))
    entropy = -math.fsum(output * np.log(np.where(output > 0, output, 1)))
    information = entropy - noise.entropy()
    assert information <= noise.leakage_bound(norm) + 1e-12
    if p <= 2:
        assert information <= noise.leakage_bound(norm, sharp=True) + 1e-12
        assert noise.leakage_bound(norm, sharp=True) <= noise.leakage_bound(norm) + 1e-12


@pytest.mark.parametrize(("p", "distortion", "norm"), [
    (1.0, 2.0, 5.0), (1.0, 1e6, 1.0), (2.0, 0.7, 0.2), (2.0, 1e6, 1e-3), (3.0, 10.0, 300.0),
    (0.5, 3.0, 1e-9), (2.0, 1e-6, 1e-6), (1.5, 1e4, 1e9),
])  # fmt: skip
def test_leakage_bound_is_a_difference_of_entropies_rounded_up(p, distortion, norm):
    noise = MaxEntropyNoise(p, distortion)
    narrow = oracle.max_entropy(p, rate_of(noise))[2]
    norms = {False: mpf(distortion) + mpf(norm)}
    if p < 1 or p == 2:
        power = (mpf(distortion) ** p + mpf(norm) ** p) ** (1 / mpf(p))
        norms = {False: power} if p < 1 else {**norms, True: power}
    for sharp, total in norms.items():
        beta = rate_of(MaxEntropyNoise(p, float(total)))
        exact = oracle.entropy_bound(p, beta, total) - narrow
        found = noise.leakage_bound(norm, sharp=sharp)
        assert exact <= found <= exact * (1 + mpf("1e-12")) + mpf("1e-12")


# The sampler.

LAWS = [
    MaxEntropyNoise(1, 0.01)._law,
    MaxEntropyNoise(1, 1e-280)._law,
    MaxEntropyNoise(1, 30.0)._law,
    MaxEntropyNoise(1, 1e15)._law,
    MaxEntropyNoise(2, 1.0)._law,
    MaxEntropyNoise(2, 1e6)._law,
    MaxEntropyNoise(0.5, 20.0)._law,
    MaxEntropyNoise(0.2, 3.0)._law,
    MaxEntropyNoise(7.5, 500.0)._law,
    MaxEntropyNoise(450, 1e4)._law,
    MaxEntropyNoise(math.inf, 1e17)._law,
    MaxEntropyNoise(math.inf, 500.0)._law,
    MaxEntropyNoise(2, 30.0, modulus=90)._law,
    MaxEntropyNoise(1, 3.0, modulus=10)._law,
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.p:g}-{law.unit:g}")


def words_for(sampler, rng, tail):
    """Random words of a trial, in the tail or not."""
    words = [int(w) for w in rng.integers(0, 2**64, size=4, dtype=np.uint64)]
    last = len(sampler.counts) - 1
    inside = np.flatnonzero((sampler.slots == last) == tail)
    words[0] = words[0] // 4096 * 4096 + int(rng.choice(inside))
    return words


def proposal(sampler, words):
    law = sampler.law
    return oracle.trial(
        words, (law.p, law.rate, law.unit), sampler.width, sampler.reach,
        sampler.counts.tolist(), sampler.slots.tolist(), sampler.lift,
    )  # fmt: skip


def decided(sampler, words, more):
    """What the kernel, and what decides for it, make of one trial."""
    law = sampler.law
    out = np.zeros(1, dtype=np.int64)
    at, filled, undecided = kernels.draw_noise(
        np.array(words, dtype=np.uint64), 0, law.p, law.rate, law.unit, law.low, law.high,
        sampler.slots, sampler.scale, sampler.sure, sampler.width, sampler.reach, out, 0,
    )  # fmt: skip
    if undecided:
        assert at == 0
        return sampler._settled(words, Script(more))[0], True
    return (int(out[0]) if filled else None), False


@each_law
def test_slots_cover_the_law(law):
    """No acceptance probability exceeds one, and every integer of the law can be proposed."""
    sampler = Sampler.of(law)
    assert sampler.counts.sum() == len(sampler.slots) == 4096
    assert (np.bincount(sampler.slots, minlength=len(sampler.counts)) == sampler.counts).all()
    last = len(sampler.counts) - 1
    covered = last << sampler.width
    assert (sampler.counts[:-1] > 0).all()
    assert (sampler.counts[-1] > 0) == (covered <= law.high)
    for strip in range(last):
        slot = int(np.flatnonzero(sampler.slots == strip)[0])
        for place in {0, 1 % (1 << sampler.width)}:
            _, _, log_accept = proposal(sampler, [slot + (place << 13), 0, 0, 0])
            assert log_accept <= 0
    if sampler.counts[-1]:
        slot = int(np.flatnonzero(sampler.slots == last)[0])
        for j in range(61 - sampler.reach):
            k, _, log_accept = proposal(sampler, [slot, 0, 1 << j, 0])
            if k <= law.high:
                assert log_accept <= 0
    assert 0.2 < sampler.acceptance <= 1


@each_law
def test_chance_times_acceptance_is_proportional_to_the_weight(law):
    sampler = Sampler.of(law)
    rng = np.random.default_rng(1)
    constants = []
    for tail in (False, True):
        for _ in range(40 if sampler.counts[-1] or not tail else 0):
            words = words_for(sampler, rng, tail)
            words[2] |= 1 << 20  # no block beyond the range
            k, log_chance, log_accept = proposal(sampler, words)
            log_weight = -mpf(law.rate) * (mpf(abs(k)) / mpf(law.unit)) ** mpf(law.p)
            # Zero is proposed with either sign, every other integer with its own.
            signs = mp.log(2) if k == 0 else 0
            constants.append(log_chance + log_accept + signs - log_weight)
    assert max(constants) - min(constants) < mpf(10) ** -30 * (1 + abs(max(constants)))


@each_law
@mp.workdps(150)
def test_every_trial_is_decided_as_in_exact_arithmetic(law):
    sampler = Sampler.of(law)
    rng = np.random.default_rng(2)
    undecided = 0
    for trial in range(300):
        words = words_for(sampler, rng, bool(trial % 3 == 0 and sampler.counts[-1]))
        k, _, log_accept = proposal(sampler, words)
        bound = mp.exp(log_accept)
        near = int(bound * 2**64) if bound < 1 else 2**64 - 1
        if trial % 2:  # a real within a few units of the bound
            words[1] = min(max(0, near + int(rng.integers(-3, 4))), 2**64 - 1)
        more = [int(w) for w in rng.integers(0, 2**64, size=4, dtype=np.uint64)]
        if trial % 4 == 1 and 0 < near < 2**64 - 1:  # within 2^-128 of it
            words[1] = near
            more[0] = int((bound * 2**64 - near) * 2**64)
        real = mpf(words[1])
        for place, word in enumerate(more, 1):
            real += mpf(word) / mpf(2) ** (64 * place)
        accepted = real < bound * 2**64 and law.low <= k <= law.high
        found, slow = decided(sampler, words, more)
        assert found == (k if accepted else None), (trial, k, words)
        undecided += slow
    if law.rate > 0:
        assert undecided > 10  # the slow path was really taken


@given(st.floats(-2.99, 6.2), st.floats(-30, 30))
@settings(max_examples=150, deadline=None)
def test_every_law_has_a_sampler_or_says_that_it_is_too_wide(log_p, log_distortion):
    law = MaxEntropyNoise(math.exp(log_p), math.exp(log_distortion))._law
    try:
        sampler = Sampler.of(law)
    except fp.TooLarge:
        assert log_distortion > 20 or log_p < -0.8  # heavy tails
        return
    assert 0.1 < sampler.acceptance <= 1
    starts = np.arange(len(sampler.counts) - 1.0) * 2.0**sampler.width
    weights = np.exp(-law.exponents(starts))
    weights[0] = 0.5 if sampler.width == 0 else 1.0
    assert (weights * sampler.scale[:-1] <= 1).all()
    assert (sampler.sure < 1).all()
    j = np.arange(60.0)
    starts = len(starts) * 2.0**sampler.width + (2.0**j - 1) * 2.0**sampler.reach
    assert (np.log(sampler.scale[-1]) + j * math.log(4) - law.exponents(starts) <= 0).all()


def test_draws_follow_the_law():
    rng = np.random.default_rng(3)
    for noise in (
        MaxEntropyNoise(1, 0.5),
        MaxEntropyNoise(1, 40.0),
        MaxEntropyNoise(2, 3.0),
        MaxEntropyNoise(2, 2000.0),
        MaxEntropyNoise(0.5, 2.0),
        MaxEntropyNoise(4, 100.0),
        MaxEntropyNoise(math.inf, 20.0),
        MaxEntropyNoise(2, 2.0, modulus=9),
        MaxEntropyNoise(1, 2.0, modulus=8),
    ):
        # The default source has no seed: what is seldom enough for one is no false alarm.
        for source, seldom in ((rng, 1e-6), (None, 1e-10)):
            drawn = noise.sample(10**6, source)
            # Cells of about equal mass, the last ones open; both signs.
            edge = int(np.abs(drawn).max()) + 1
            k = np.arange(-edge, edge + 1)
            law = (
                noise.pmf(k)
                if noise.modulus is None
                else np.where(
                    (k > -noise.modulus / 2) & (k <= noise.modulus / 2), noise.pmf(k), 0.0
                )
            )
            cells = np.minimum((np.cumsum(law) * 60).astype(int), 59)
            expected = np.bincount(cells, law, minlength=60)
            seen = np.bincount(cells[drawn + edge], minlength=60)
            used = expected > 0
            assert seen[~used].sum() == 0
            expected = expected[used] / expected[used].sum() * 1e6
            assert scipy.stats.chisquare(seen[used], expected).pvalue > seldom, (noise, source)


def test_seeds_repeat_and_the_default_does_not():
    noise = MaxEntropyNoise(2, 1e6)
    assert (noise.sample(50, 7) == noise.sample(50, 7)).all()
    assert (noise.sample(50) != noise.sample(50)).any()
    assert noise.sample((2, 3)).shape == (2, 3)
    assert noise.sample(0).shape == (0,)
    assert noise.sample().dtype == np.int64


def test_a_hopeless_block_is_rejected_unless_all_its_bits_are_zero():
    sampler = Sampler.of(LAWS[2])
    words = words_for(sampler, np.random.default_rng(0), True)
    words[2] = 0
    assert decided(sampler, words, []) == (None, False)
    words[1] = 0
    assert decided(sampler, words, [0, 0, 0, 1]) == (None, True)
    with pytest.raises(OverflowError):
        decided(sampler, words, [0, 0, 0, 0])


@pytest.mark.parametrize(("arguments", "message"), [
    ((0.01, 1.0), "p must be"),
    ((math.nan, 1.0), "p must be"),
    ((2, -1.0), "distortion must be"),
    ((2, math.inf), "distortion must be"),
    ((2, "wide"), "distortion must be"),
])  # fmt: skip
def test_bad_arguments(arguments, message):
    with pytest.raises(fp.InvalidInput, match=message):
        MaxEntropyNoise(*arguments)


def test_what_cannot_be_done_is_said():
    with pytest.raises(fp.InvalidInput, match="modulus"):
        MaxEntropyNoise(1, 1.0).channel()
    with pytest.raises(fp.InvalidInput, match="modulus"):
        MaxEntropyNoise(1, 1.0, modulus=0)
    with pytest.raises(fp.TooLarge, match="shorter cycle"):
        MaxEntropyNoise(1, 1.0, modulus=1 << 30)
    with pytest.raises(fp.TooLarge, match="64-bit"):
        MaxEntropyNoise(1, 1e18).sample(1)
    with pytest.raises(fp.TooLarge, match="64-bit"):
        MaxEntropyNoise(math.inf, 1e19)
    with pytest.raises(fp.TooLarge, match="64-bit"):
        MaxEntropyNoise(math.inf, 1e18).sample(1)
    with pytest.raises(fp.TooLarge, match="64-bit"):
        MaxEntropyNoise(0.1, 1e12).sample(1)
    with pytest.raises(fp.InvalidInput, match="size"):
        MaxEntropyNoise(1, 1.0).sample(2.5)
    with pytest.raises(fp.InvalidInput, match="integers"):
        MaxEntropyNoise(1, 1.0).pmf([0.5])
    with pytest.raises(fp.InvalidInput, match="p <= 2"):
        MaxEntropyNoise(3, 1.0).leakage_bound(1.0, sharp=True)
    with pytest.raises(fp.InvalidInput, match="norm"):
        MaxEntropyNoise(3, 1.0).leakage_bound(math.nan)


def test_the_unit_makes_geometric_levels_exact():
    law = PowerLaw(1.0, 0.1 * 2.0**3, 2.0**3, -FAR, FAR)
    assert Fraction(law.rate) / Fraction(law.unit) == Fraction(0.1)
