"""Notions about a secret S that reaches the output through the database only."""

from __future__ import annotations

from dataclasses import replace

from fastpriv.notions.mechanism import MECHANISM
from fastpriv.notions.notion import Notion
from fastpriv.notions.papers import ISSA, MAKHDOUMI, SAEIDIAN
from fastpriv.notions.prior import UNDER_PRIOR

#: Notions that are measured about S as well, with their titles and sources there.
_TITLES = {
    "mutual-information": ("mutual information with S", f"{MAKHDOUMI}, Definition 1"),
    "pml": ("leakage about S", f"{SAEIDIAN}, Definition 2.3"),
    "information-privacy": ("information privacy of S", f"{MAKHDOUMI}, Definition 7"),
    "strong-dp": ("differential privacy of S", f"{MAKHDOUMI}, Definition 7"),
    "maximal-leakage": ("maximal leakage about S", f"{ISSA}, Theorem 1"),
    "leakage-factor": ("leakage factor of S", f"{MAKHDOUMI}, Definition 1"),
    "worst-leakage-factor": ("worst leakage factor of S", f"{MAKHDOUMI}, Definition 7"),
    "error-probability": ("chance of a wrong guess of S", f"{MAKHDOUMI}, Proposition 1 (Fano)"),
}


def _about_secret(notion: Notion) -> Notion:
    """Return the same notion of the channel from S to the output, which has no law of its own."""
    title, source = _TITLES[notion.slug]
    return replace(
        notion,
        slug=f"secret-{notion.slug}",
        title=title,
        bounds=f"{notion.slug} of the channel from S to the output",
        source=source,
        measure=None,
        scope="secret",
        law=None,
        implies=(),
        program=None,
        display="headline" if notion.slug == "pml" else "bar",
    )


_DECLARED = {notion.slug: notion for notion in (*MECHANISM, *UNDER_PRIOR)}

ABOUT_SECRET = tuple(_about_secret(_DECLARED[slug]) for slug in _TITLES)
