"""The registry of notions: complete, consistent, and the one source of every other table."""

import math
import re

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import LAWS
from fastpriv.auditing.sentences import LINES
from fastpriv.design.registry import PROGRAMS
from fastpriv.measures.levels import LEVELS
from fastpriv.notions import NOTIONS
from fastpriv.notions.registry import COMPARED, DESIGNED, RELATED
from fastpriv.results import top

CHANNEL = fp.Channel(np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6], [0.1, 0.5, 0.4]]))
CHANNEL = fp.Channel(CHANNEL.matrix(), [2, 2])
PRIOR = fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2])


def test_keys_are_slugs():
    for slug, notion in NOTIONS.items():
        assert notion.slug == slug
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
        assert notion.title
        assert notion.bounds
        assert notion.source
        assert notion.scope in ("mechanism", "prior", "secret", "facts")
        assert notion.direction in ("upper", "lower")
        assert notion.unit in ("nats", "share", "probability", "rows", "outputs", "")


def test_titles_are_different():
    titles = [notion.title for notion in NOTIONS.values()]
    assert len(set(titles)) == len(titles)


def test_laws_and_rules_speak_of_notions():
    for slug, notion in NOTIONS.items():
        if notion.law is not None:
            assert notion.law.notion == slug
            assert {notion.law.first, notion.law.later} <= set(NOTIONS)
            assert LAWS[slug] is notion.law
        for rule in notion.implies:
            assert rule.conclusion in NOTIONS
            assert rule.conclusion != slug
            assert rule.source
    composed = {slug for slug, notion in NOTIONS.items() if notion.law is not None}
    assert set(LAWS) == composed | {"delta", "zcdp"}  # budgets that are no notions
    assert set(RELATED) >= {slug for slug, notion in NOTIONS.items() if notion.implies}


def test_levels_and_programs_belong_to_notions():
    assert set(LEVELS) <= set(NOTIONS)
    assert COMPARED == ("dp", "identifiability", "mutual-information")
    assert tuple(PROGRAMS) == DESIGNED
    assert set(DESIGNED) == {*COMPARED, "pml", "individual-capacity"}
    assert all(getattr(fp, program.__name__) is program for program in PROGRAMS.values())


def test_audits_measure_notions_of_the_registry_only():
    assert set(LINES) <= set(NOTIONS)
    # What an audit has no line for is about records, implied only, or another name of the DP level.
    left_out = {slug for slug in NOTIONS if slug not in LINES}
    assert left_out == {
        *(slug for slug in NOTIONS if slug.startswith(("record-", "column-", "product-row-"))),
        "approximate-dp",
        "divergence",
        "group-capacity",
        "pml-all-priors",
    }


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("slug", LEVELS)
def test_the_level_of_a_notion_is_that_of_an_audit(slug):
    """Except where only the audit, or only the registry, measures it."""
    notion = NOTIONS[slug]
    channel = fp.HammingChannel(2, 2, 0.5) if slug == "distortion" else CHANNEL
    level = notion.level(channel, None if notion.scope == "mechanism" else PRIOR)
    audit = fp.audit(channel, PRIOR)
    if slug in audit:
        assert math.isclose(top(level), top(audit[slug]), rel_tol=1e-8, abs_tol=1e-12)
    else:
        assert slug.startswith("product-row-") or slug in ("approximate-dp", "pml-all-priors")


def test_a_level_that_needs_a_prior_says_so():
    with pytest.raises(fp.InvalidInput, match="prior must be a distribution"):
        NOTIONS["pml"].level(CHANNEL)
    with pytest.raises(fp.InvalidInput, match="prior must be a distribution"):
        NOTIONS["entropy"].level(CHANNEL)
    with pytest.raises(fp.InvalidInput, match="audit"):
        NOTIONS["row-pml"].level(CHANNEL, PRIOR)
