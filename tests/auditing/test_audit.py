"""The audit: values of the single measures, sentences with the number, worst cases that are so."""

import json
import math
import re

import mpmath
import numpy as np
import pytest

import cases
import fastpriv as fp
import oracles as o
from fastpriv._text.numbers import down, shown, up
from fastpriv.auditing.sentences import converted, factor, percent
from fastpriv.notions.registry import RELATED
from oracles import witnesses as ow

UNDER_PRIOR = {
    "identifiability": fp.identifiability_level,
    "mutual-information": fp.mutual_information,
    "pml": fp.pml_level,
    "row-pml": lambda channel, prior: fp.pml_level(channel, prior, row="worst"),
    "max-information": fp.max_information,
    "information-privacy": fp.information_privacy_level,
    "leakage-factor": fp.leakage_factor,
    "worst-leakage-factor": fp.worst_leakage_factor,
    "maximal-correlation": fp.maximal_correlation,
    "sdpi": lambda channel, prior: fp.sdpi_constant(channel, prior, time_limit=None),
    "distortion": fp.distortion,
}
ALWAYS = {
    "dp": fp.dp_level,
    "realised-dp": fp.realised_level,
    "strong-dp": fp.strong_dp_level,
    "max-individual-capacity": fp.max_individual_capacity,
    "maximal-leakage": fp.maximal_leakage,
    "contraction": fp.contraction_coefficient,
    "channel-capacity": fp.channel_capacity,
    "singles-out": fp.singles_out,
    **{
        f"approximate-dp-1e-{k}": lambda channel, k=k: fp.hockey_stick_epsilon(channel, 10.0**-k)
        for k in (3, 6, 9)
    },
}
FACTS = {
    "entropy": lambda prior: prior.entropy(),
    "min-entropy": lambda prior: prior.min_entropy(),
    "epsilon-x": lambda prior: prior.epsilon_x(),
    "epsilon-hat": lambda prior: prior.epsilon_hat(),
    "epsilon-tilde": lambda prior: prior.epsilon_tilde(),
    "disclosure-threshold": fp.disclosure_threshold,
}


def subjects():
    rng = np.random.default_rng(4)
    sizes = (2, 2, 2)
    prior = fp.Exchangeable.beta_binomial(3, 0.9, 1.3)
    for name, channel, _ in cases.channels(sizes):
        yield name, channel, prior
    yield "posterior", fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.2), prior
    yield "types", cases.once(lambda: fp.solve_pd_dp(prior, 0.7).channel), prior
    yield "count", fp.QueryChannel.count(3, cases.kernel(rng, 4, 3)), prior
    yield "plain", fp.Channel(cases.kernel(rng, 4, 3)), fp.Dense(cases.law(rng, 4))
    yield (
        "holes",
        fp.Channel(cases.kernel(rng, 4, 3), [2, 2]),
        fp.Dense([0.5, 0.0, 0.25, 0.25], [2, 2]),
    )
    yield "one database", fp.Channel([[0.5, 0.5]]), fp.Dense([1.0])
    yield "one value", fp.HammingChannel(2, 1, 1.0), fp.Uniform(2, 1)
    yield "identity", fp.Channel(np.eye(4), [2, 2]), fp.Uniform(2, 2)
    yield "constant", fp.Channel(np.full((4, 4), 0.25), [2, 2]), fp.Uniform(2, 2)
    yield "epsilon 1e-8", fp.HammingChannel(3, 2, 1e-8), prior
    yield "epsilon 700", fp.HammingChannel(3, 2, 700.0), prior


#: Audits that take little time.
QUICK = [
    "hamming-0.0",
    "product-zeros",
    "matrix-one-output",
    "one database",
    "one value",
    "identity",
    "constant",
    "epsilon 700",
]
SUBJECTS = [pytest.param(channel, prior, id=name) for name, channel, prior in subjects()]


def every(test):
    """Ask a test of every audit; of quick ones by default."""
    test = pytest.mark.slow(but=QUICK)(test)
    return pytest.mark.parametrize(("channel", "prior"), SUBJECTS, indirect=["channel"])(test)


AUDITS = {}

#: Measures that are rounded to nearest, and that an audit raises past their error.
AVERAGES = ("mutual-information", "leakage-factor")


def audited(channel, prior):
    """Audit once for all tests."""
    if id(channel) not in AUDITS:
        AUDITS[id(channel)] = fp.audit(channel, prior)
    return AUDITS[id(channel)]


def possible(channel):
    """Which databases can cause which outputs; randomised response can do all, however rarely."""
    everything = isinstance(channel, fp.HammingChannel)
    return np.ones_like(channel.matrix()) if everything else channel.matrix() > 0


def same(found, truth):
    if isinstance(truth, fp.Bracket):
        return (found.lower, found.upper) == (truth.lower, truth.upper)
    return found == truth and type(found) is type(truth)


@every
def test_values_are_those_of_the_single_measures(channel, prior):
    audit = audited(channel, prior)
    for notion, measure in ALWAYS.items():
        assert same(audit[notion], measure(channel)), notion
    for notion, measure in UNDER_PRIOR.items():
        if notion in audit.skipped:
            with pytest.raises((fp.InvalidInput, fp.TooLarge)):
                measure(channel, prior)
        else:
            truth = measure(channel, prior)
            if notion in AVERAGES and not isinstance(truth, fp.Bracket):
                assert truth <= audit[notion] <= truth * (1.0 + 2.0**-39), notion
            else:
                assert same(audit[notion], truth), notion
    for notion, measure in FACTS.items():
        assert same(audit[notion], measure(prior)), notion
    single = fp.individual_capacity(channel)
    assert audit["individual-capacity"].lower <= single.upper
    assert audit["individual-capacity"].upper >= single.lower
    assert audit["ruling-out"] == len(ow.ruling_out(possible(channel)))
    factor_ = audit["leakage-factor"]
    most = factor_.upper if isinstance(factor_, fp.Bracket) else factor_
    assert audit["error-probability"] == fp.error_probability_bound(most, prior)
    assert set(audit.skipped) <= {"distortion"}
    assert len(audit.levels) + len(audit.skipped) == 13 + 14 + 6


@every
def test_disclosure_is_a_database_ruled_out(channel, prior):
    audit, alive = audited(channel, prior), prior.pmf() > 0
    truth = bool(ow.ruling_out(possible(channel)[alive].tolist()))
    assert audit["disclosure"] is truth
    if truth:
        worst, sizes = audit.levels["disclosure"].worst, channel.space.sizes
        y = o.index(worst.output, channel.output_space.sizes)
        x, other = (o.index(v, sizes) for v in (worst.database, worst.other))
        assert channel.matrix()[x, y] > 0 == channel.matrix()[other, y]
        assert alive[x]
        assert alive[other]


@every
def test_worst_cases_attain_the_level(channel, prior):
    audit, matrix, pmf = audited(channel, prior), channel.matrix(), prior.pmf()
    sizes, outputs = channel.space.sizes, channel.output_space.sizes

    def log_chance(x, y):
        """ln W[x, y], also where it is too small for a double."""
        if isinstance(channel, fp.HammingChannel):
            e, rows = channel.epsilon, channel.space.rows(np.array([x, y]))
            stay = sum(math.log1p((m - 1) * math.exp(-e)) for m in sizes)
            return -e * len(ow.differ(*rows)) - stay
        return math.log(matrix[x, y]) if matrix[x, y] > 0 else -math.inf

    for notion in ("dp", "strong-dp", "identifiability", "pml"):
        level = audit.levels[notion]
        if level.value == 0.0:
            assert level.worst is None
            assert level.where == ""
            continue
        y = o.index(level.worst.output, outputs)
        x = o.index(level.worst.database, sizes)
        ratio = log_chance(x, y)
        if notion == "pml":
            ratio -= math.log(math.fsum(pmf * matrix[:, y]))
        else:
            other = o.index(level.worst.other, sizes)
            ratio -= log_chance(other, y)
            if notion == "identifiability":
                ratio += o.log_ratio(pmf[x], pmf[other])
        if level.value == math.inf:
            assert ratio == math.inf
            assert "rules out" in level.where
        else:
            assert abs(ratio - level.value) <= 1e-11 * max(1.0, level.value)
        assert level.where.startswith("Output ")
    who = audit.levels["individual-capacity"].worst
    if who is not None:
        law, rows = np.zeros(channel.space.size), who.databases
        law[[o.index(x, sizes) for x in rows]] = who.law
        told = fp.mutual_information(channel, fp.Dense(law, sizes))
        assert told >= audit["individual-capacity"].lower * (1 - 1e-9) - 1e-14


@every
def test_every_level_says_its_number_in_one_sentence(channel, prior):
    for level in audited(channel, prior).levels.values():
        assert level.meaning.endswith(".")
        assert ". " not in level.meaning
        assert level.source
        value = level.value.upper if isinstance(level.value, fp.Bracket) else level.value
        if isinstance(value, bool):
            assert level.meaning.startswith("Yes" if value else "No")
        elif value == math.inf:
            assert not re.search(r"nan|inf\b", level.meaning)
        elif level.notion == "min-entropy":
            assert converted(math.exp(-value)) in level.meaning
        else:
            said = {
                "nats": [factor(value), up(value, 4), down(value, 4)],
                "share": [percent(value)],
            }.get(level.unit, [up(value, 4), down(value, 4), shown(value)])
            assert any(words in level.meaning for words in said), level


@every
def test_text_dict_and_json(channel, prior):
    audit = audited(channel, prior)
    for text in (repr(audit), str(audit)):
        assert max(map(len, text.splitlines())) <= 100
        assert all(level.shown in " ".join(text.split()) for level in audit.levels.values())
    explained = str(audit).split()  # in columns, so that sentences are not in one piece
    for text in [level.meaning for level in audit.levels.values()] + [*audit.skipped.values()]:
        assert set(text.split()) <= set(explained)
    found = json.loads(audit.to_json())
    assert found == audit.to_dict()
    assert "NaN" not in audit.to_json()
    assert list(found["levels"]) == list(audit)
    for notion, level in audit.levels.items():
        value = found["levels"][notion]["value"]
        if isinstance(level.value, fp.Bracket):
            assert (value["lower"], value["upper"]) == (level.value.lower, level.value.upper)
        else:
            assert value == ("infinite" if level.value == math.inf else level.value)


@every
def test_what_follows_is_never_less_than_what_was_measured(channel, prior):
    audit = audited(channel, prior)
    for found in audit.implied:
        assert found.notion in RELATED
        assert found.steps[0].premise == found.premise
        assert found.steps[-1].conclusion == found.notion
        assert found.premise in audit
        assert math.isfinite(found.level)
        if found.measured is not None:
            top = found.measured.upper if isinstance(found.measured, fp.Bracket) else found.measured
            # Both are rounded up, the measured one by a few 1e-12 where sums are long.
            assert top <= found.level * (1 + 1e-11) + 1e-13
            assert same(audit[found.notion], found.measured)
            assert found.better == (top < found.level * (1 - 1e-9))


def test_without_a_prior_only_what_needs_none():
    audit = fp.audit(fp.HammingChannel(3, 2, 1.0))
    assert {level.scope for level in audit.levels.values()} == {"mechanism"}
    assert set(audit.skipped) == {
        *UNDER_PRIOR,
        "error-probability",
        "constrained-capacity",
        "disclosure",
    }
    assert all("give a prior" in why for why in audit.skipped.values())
    with pytest.raises(fp.InvalidInput, match="give a prior"):
        audit["pml"]
    with pytest.raises(fp.InvalidInput, match="not a notion"):
        audit["privacy"]
    for name in ("pml", "privacy"):
        with pytest.raises(KeyError) as error:
            audit[name]
        assert str(error.value).startswith(f"{name!r} was not measured: ")
    assert "dp" in audit
    assert "pml" not in audit


def test_matrices_that_may_be_several_rows():
    assert "[2] * 3" in fp.audit(np.eye(8)).notes[0]
    assert "[3] * 2" in fp.audit(np.eye(9)).notes[0]
    assert fp.audit(np.eye(6)).notes == ()
    assert fp.audit(fp.HammingChannel(1, 8, 1.0)).notes == ()
    assert fp.audit(fp.Channel(np.eye(8), [2, 2, 2])).notes == ()


def test_a_plain_matrix_takes_the_space_of_the_prior():
    matrix = cases.kernel(np.random.default_rng(1), 4, 4)
    audit = fp.audit(matrix, fp.Uniform(2, 2))
    assert audit.channel.space == fp.Space([2, 2])
    assert audit["dp"] == fp.dp_level(fp.Channel(matrix, [2, 2]))


def test_outputs_that_rule_databases_out_are_named():
    audit = fp.audit([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    assert audit["ruling-out"] == 2
    assert audit.levels["ruling-out"].meaning == ("2 of 3 outputs rule out some database: 1, 2.")
    many = fp.audit(fp.ProductChannel([[[1.0, 0.0], [0.5, 0.5]]] * 1000))
    assert many["ruling-out"] == 2**1000 - 1
    assert json.loads(many.to_json())["levels"]["ruling-out"]["value"] == "about 2^999"


def test_which_rows_are_given_away():
    noisy, exact = [[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]
    audit = fp.audit(fp.ProductChannel([noisy, exact]), fp.Uniform(2, 2))
    assert "the value of record 1;" in audit.levels["disclosure"].meaning
    assert audit["singles-out"] is False


@pytest.mark.slow
def test_implied_levels_are_not_below_the_measured_ones():
    rng = np.random.default_rng(7)
    for _ in range(20):
        matrix = cases.kernel(rng, 4, 3) ** rng.integers(1, 6)
        matrix[rng.random(4) < 0.3, 0] = 0.0
        law = np.where(rng.random(4) < 0.4, 0.0, cases.law(rng, 4))
        law[0] += 0.1
        matrix, law = matrix / matrix.sum(axis=1, keepdims=True), law / law.sum()
        audit = fp.audit(fp.Channel(matrix, [2, 2]), law, time_limit=0)
        for found in audit.implied:
            if found.measured is not None:
                least = getattr(found.measured, "lower", found.measured)
                # Both are upper bounds; a measured level of nearly 0 has an error of its own.
                assert found.level >= least * (1 - 1e-12) - 1e-13, found


def test_a_single_database_has_nothing_to_tell():
    audit = fp.audit([[0.5, 0.5]], [1.0])
    said = {notion: level.meaning for notion, level in audit.levels.items()}
    assert said["singles-out"] == "No: there is a single database, so no output reveals anything."
    nothing = "ingle database can occur, so there is nothing to disclose."
    assert said["disclosure"].endswith(nothing)
    assert said["disclosure-threshold"].endswith(nothing)


def test_sentences_on_bounds_that_say_nothing():
    audit = fp.audit(np.eye(4), fp.Uniform(2, 2))
    assert "may reveal the whole database" in audit.levels["error-probability"].meaning
    assert "the value of records 0, 1;" in audit.levels["disclosure"].meaning
    hidden = fp.audit(fp.HammingChannel(2, 2, 0.01), fp.Uniform(2, 2)).levels["disclosure"]
    assert hidden.meaning.endswith("below the threshold of 0.2876 nats, which alone proves it.")


def test_a_worst_case_that_is_not_located_says_so(monkeypatch):
    def refuse(channel, prior=None):
        raise fp.TooLarge("too many entries.")

    monkeypatch.setattr("fastpriv.auditing.case.step_witness", refuse)
    level = fp.audit(fp.HammingChannel(2, 2, 1.0)).levels["dp"]
    assert level.worst is None
    assert level.where == "What attains it was not located: too many entries."


def test_factors_are_rounded_up():
    assert factor(math.log(3)) == "3"
    assert factor(1.0) == "2.719"
    assert factor(0.0) == "1"
    assert factor(1e-4) == "1.000101"
    assert factor(0.005) == "1.00502"
    assert factor(1e-8) == "1 + 1.001e-8"
    assert factor(700.0) == "e^700"


CLOSED = [
    "dp", "strong-dp", "max-individual-capacity", "maximal-leakage", "identifiability",
    "mutual-information", "pml", "information-privacy", "max-information", "entropy",
]  # fmt: skip


def test_notions_are_chosen():
    channel, prior = fp.HammingChannel(3, 2, 1.0), fp.Uniform(3, 2)
    whole, part = fp.audit(channel, prior), fp.audit(channel, prior, notions=iter(CLOSED))
    assert set(part.levels) == set(CLOSED)
    assert not part.skipped
    assert [*part] == [slug for slug in whole if slug in CLOSED]  # the order of the registry
    for slug in CLOSED:
        assert part.levels[slug].to_dict() == whole.levels[slug].to_dict()
    alone = fp.audit(channel, notions=["dp", "pml"])
    assert [*alone] == ["dp"]
    assert [*alone.skipped] == ["pml"]
    comparison = fp.compare(channel, channel, prior, notions=["dp", "pml"])
    assert [*comparison.first] == ["dp", "pml"]


@pytest.mark.parametrize("notions", ["dp", [], 3, ["dp", "pmll"], [3], [["dp"]]])
def test_notions_that_are_none_are_refused(notions):
    with pytest.raises(fp.InvalidInput, match=r"slugs|do not measure"):
        fp.audit([[0.5, 0.5]], notions=notions)


def test_averages_are_raised_past_their_error():
    """ln 2 of one bit, and the information of a rare output, in 60 digits."""
    laws, prior = [[[1.0, v], [1.0, 0.0]] for v in (1e-17, 1e-100, 1e-300)], [0.5, 0.5]
    table = fp.audit_many([np.array(law) for law in laws], [prior] * 3)
    for place, law in enumerate(laws):
        with mpmath.workdps(700):
            v = mpmath.mpf(law[0][1])
            W = [[1 / (1 + v), v / (1 + v)], [mpmath.mpf(1), mpmath.mpf(0)]]
            q = [(a + b) / 2 for a, b in zip(*W, strict=True)]
            told = mpmath.fsum(
                a * mpmath.log(a / b) / 2 for row in W for a, b in zip(row, q, strict=True) if a
            )
            audit = fp.audit(law, prior)
            for found in (audit["mutual-information"], table["mutual-information"][place]):
                assert told <= found <= told * (1 + mpmath.mpf(2) ** -39)
            share = told / mpmath.log(2)
            for found in (audit["leakage-factor"], table["leakage-factor"][place]):
                assert share <= found <= share * (1 + mpmath.mpf(2) ** -38)
    assert fp.audit([[1.0, 0.0], [0.0, 1.0]], prior)["leakage-factor"] == 1.0
