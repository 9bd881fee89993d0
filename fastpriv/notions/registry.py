"""Every notion of privacy, declared once.

A new notion is a ``Notion`` in the tuple of its scope, its function in ``measures/levels.py`` and
its sentence in ``auditing/sentences.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from fastpriv.notions.notion import ADAPTIVE, INDEPENDENT, POSTERIOR, Law, Notion, additive
from fastpriv.notions.rules import (
    Rule,
    at_most_entropy,
    at_most_one,
    at_most_rarest,
    capacity_bound,
    correlated,
    groups,
    over_entropy,
    plus_epsilon_x,
    root,
    same,
    single_record,
    times_entropy,
    twice,
    two_sided,
)

# How sources are cited.
WANG = "Wang-Ying-Zhang 2015"
MAKHDOUMI = "Makhdoumi-Fawaz 2013"
WU = "Wu-Xia-He 2020"
SAEIDIAN = "Saeidian et al. 2024"
ISSA = "Issa et al. 2019"

#: Deltas of (epsilon, delta)-differential privacy that audits ask for.
DELTAS = (1e-3, 1e-6, 1e-9)

_CHORDS = "divergence from the smallest probabilities, by a chord"
_RATIOS = "likelihood ratios multiply"


def delta_slug(delta: float) -> str:
    """Return the slug of differential privacy at a delta, such as "approximate-dp-1e-6"."""
    return "approximate-dp-" + f"{delta:.0e}".replace("e-0", "e-")


def _at_delta(delta: float) -> Notion:
    name = delta_slug(delta).removeprefix("approximate-dp-")
    return Notion(
        slug=delta_slug(delta),
        title=f"differential privacy at delta {name}",
        bounds=f"epsilon of (epsilon, delta)-DP at delta {name}",
        source=f"{MAKHDOUMI}, Definition 7",
        display="row",
    )


MECHANISM = (
    Notion(
        slug="dp",
        title="differential privacy",
        bounds="ln p(y|x)/p(y|x') over neighbours x, x'",
        source=f"{WANG}, Definition 3",
        law=additive("dp", ADAPTIVE, _RATIOS),
        implies=(
            Rule("strong-dp", "group privacy, one record at a time", "n e", groups),
            same("approximate-dp", f"{MAKHDOUMI}, Proposition 4 (5)"),
            same("product-row-pml", f"{SAEIDIAN}, Theorem 4.2 (3)"),
            same("product-row-max-information", f"{WU}, Theorem 1"),
            Rule("product-row-information", _CHORDS, "psi(e)", capacity_bound),
            Rule("identifiability", f"{WANG}, Theorem 1 (eq. 25)", "e + eps_X", plus_epsilon_x),
        ),
        display="headline",
    ),
    Notion(
        slug="column-dp",
        title="differential privacy of one column",
        bounds="ln p(y|x)/p(y|x') over records x, x' that differ in one column",
        source=f"{WANG}, Definition 3",
        display="row",
    ),
    Notion(
        slug="approximate-dp",
        title="approximate differential privacy",
        bounds="epsilon of (epsilon, delta)-DP, for every delta >= 0",
        source=f"{MAKHDOUMI}, Definition 7",
        law=additive("approximate-dp", ADAPTIVE, f"{_RATIOS}; deltas add too"),
        display="row",
    ),
    *map(_at_delta, DELTAS),
    Notion(
        slug="realised-dp",
        title="differential privacy of draws",
        bounds="ln of the ratio of the probabilities that sample() uses, over neighbours",
        source="integer thresholds of the sampler",
        display="row",
    ),
    Notion(
        slug="strong-dp",
        title="strong differential privacy, leakage capacity",
        bounds="ln p(y|x)/p(y|x') over all databases x, x' (local, free-lunch)",
        source=f"{MAKHDOUMI}, Definition 7; {SAEIDIAN}, Definition 2.7",
        law=additive("strong-dp", ADAPTIVE, _RATIOS),
        implies=(
            same("dp", f"{MAKHDOUMI}, Definition 7"),
            same("information-privacy", f"{MAKHDOUMI}, Proposition 4 (1)"),
            same("pml-all-priors", f"{SAEIDIAN}, Theorem 4.5 (1)"),
            Rule("channel-capacity", _CHORDS, "psi(e)", capacity_bound),
        ),
        display="headline",
    ),
    Notion(
        slug="record-strong-dp",
        title="leakage capacity per record",
        bounds="ln p(y|x)/p(y|x') over all values x, x' of one record",
        source=f"{SAEIDIAN}, Definition 2.7",
        display="row",
    ),
    Notion(
        slug="product-row-pml",
        title="leakage about one record, records independent",
        bounds="leakage of an output about one record, over all priors with independent records",
        source=f"{SAEIDIAN}, Theorem 4.2",
        law=additive("product-row-pml", ADAPTIVE, f"{SAEIDIAN}, Theorem 4.2: it is the DP level"),
        implies=(same("dp", f"{SAEIDIAN}, Theorem 4.2 (3)"),),
        display="row",
    ),
    Notion(
        slug="product-row-max-information",
        title="max-information about one record, records independent",
        bounds="max-information of one row and output, over the same priors",
        source=f"{WU}, Definition 8",
        law=additive("product-row-max-information", ADAPTIVE, f"{WU}, Theorem 1: the DP level"),
        implies=(
            same("dp", f"{WU}, Theorem 1"),
            same("product-row-information", f"{WU}, Corollary 1"),
        ),
        display="row",
    ),
    Notion(
        slug="product-row-information",
        title="mutual information about one record, records independent",
        bounds="mutual information of one record and output, over the same priors",
        source=f"{WU}, Corollary 1",
        law=additive("product-row-information", ADAPTIVE, "chain rule given the other records"),
        display="row",
    ),
    Notion(
        slug="pml-all-priors",
        title="pointwise maximal leakage over all priors",
        bounds="leakage of an output about the database, over all priors",
        source=f"{SAEIDIAN}, Definition 2.7",
        law=additive(
            "pml-all-priors", ADAPTIVE, f"{SAEIDIAN}, Theorem 4.5: it is the strong DP level"
        ),
        implies=(
            same("strong-dp", f"{SAEIDIAN}, Theorem 4.5 (1)"),
            same("pml", f"{SAEIDIAN}, Definition 2.6"),
        ),
        display="row",
    ),
    Notion(
        slug="max-individual-capacity",
        title="max-information about one record",
        bounds="max-information of one record and output, over all priors",
        source=f"{WU}, Definition 8",
        implies=(same("strong-dp", f"{WU}, Definition 8: any two databases differ in a record"),),
        display="row",
    ),
    Notion(
        slug="maximal-leakage",
        title="maximal leakage",
        bounds="ln of the sum over y of max_x p(y|x), x in the support of the prior",
        source=f"{ISSA}, Theorem 1",
        law=additive("maximal-leakage", ADAPTIVE, "a maximum of products is at most their product"),
        implies=(same("mutual-information", "Sibson order 1 below infinity"),),
    ),
    Notion(
        slug="record-maximal-leakage",
        title="maximal leakage per record",
        bounds="maximal leakage about one record",
        source=f"{ISSA}, Theorem 1",
        display="row",
    ),
    Notion(
        slug="channel-capacity",
        title="channel capacity",
        bounds="mutual information of database and output, over all priors",
        source=f"Shannon 1948; {WU}, Section 3",
        information=True,
        implies=(
            same("individual-capacity", f"{WU}, Section 3: a record is part of the database"),
            same("group-capacity", f"{WU}, Definition 17: a group is part of the database"),
            same("mutual-information", "the maximum over all priors"),
        ),
    ),
    Notion(
        slug="record-channel-capacity",
        title="channel capacity per record",
        bounds="mutual information of one record and its output, over all priors",
        source="Shannon 1948",
        information=True,
        display="row",
    ),
    Notion(
        slug="individual-capacity",
        title="individual capacity",
        bounds="mutual information of one record and output, over all priors",
        source=f"{WU}, Definition 5",
        information=True,
        law=additive(
            "individual-capacity",
            ADAPTIVE,
            f"{WU}, Theorem 5: one data set; ``two_dataset_bound`` for several. The chain rule: "
            "earlier outputs lead to another prior",
        ),
        implies=(same("product-row-information", f"{WU}, Definition 5: fewer priors"),),
        display="headline",
    ),
    Notion(
        slug="group-capacity",
        title="capacity about a group",
        bounds="mutual information of a group of records and output, over all priors",
        source=f"{WU}, Definition 17",
        information=True,
        implies=(same("individual-capacity", f"{WU}, Definition 17: a record of the group"),),
        display="row",
    ),
    Notion(
        slug="contraction",
        title="contraction coefficient",
        bounds="I(S; Y)/I(S; X) over all secrets S and all priors",
        source=f"{MAKHDOUMI}, Theorem 1 and (7)",
        unit="share",
        implies=(
            same("sdpi", f"{MAKHDOUMI}, Theorem 1: the maximum over priors"),
            same("leakage-factor", f"{MAKHDOUMI}, Theorem 1: I(S; Y) <= e I(S; X) <= e H(S)"),
        ),
        ceiling=at_most_one,
    ),
    Notion(
        slug="ruling-out",
        title="outputs that rule databases out",
        bounds="the number of outputs that some database, but not every one, makes impossible",
        source=f"{SAEIDIAN}, Definition 3.3",
        unit="outputs",
    ),
    Notion(
        slug="singles-out",
        title="singling out",
        bounds="whether some output is possible for a single database only",
        source=f"{SAEIDIAN}, Definition 3.9",
        unit="",
    ),
)

_CHAIN = "first level + leakage capacities"

UNDER_PRIOR = (
    Notion(
        slug="identifiability",
        title="identifiability",
        bounds="ln p(x|y)/p(x'|y) over neighbours x, x', under the prior",
        source=f"{WANG}, Definition 2",
        scope="prior",
        law=Law(
            notion="identifiability",
            first="identifiability",
            later="dp",
            name="first level + later DP levels",
            needs=ADAPTIVE,
            source=f"{WANG}, Theorem 1 (eq. 25), on the posterior",
        ),
        implies=(Rule("dp", f"{WANG}, Theorem 1 (eq. 25)", "e + eps_X", plus_epsilon_x),),
        display="headline",
    ),
    Notion(
        slug="mutual-information",
        title="mutual information",
        bounds="mutual information of database and output, under the prior",
        source=f"{WANG}, Definition 4",
        scope="prior",
        information=True,
        law=additive("mutual-information", INDEPENDENT, "chain rule, conditioning on the rest"),
        implies=(Rule("leakage-factor", f"{MAKHDOUMI}, Definition 1", "e / H(S)", over_entropy),),
        ceiling=at_most_entropy,
    ),
    Notion(
        slug="record-mutual-information",
        title="mutual information per record",
        bounds="mutual information of one record and its output, under the prior",
        source=f"{WANG}, Definition 4",
        scope="prior",
        information=True,
        display="row",
    ),
    Notion(
        slug="pml",
        title="pointwise maximal leakage",
        bounds="leakage of an output about the database, under the prior",
        source=f"{SAEIDIAN}, Definition 2.6",
        scope="prior",
        law=Law(
            notion="pml",
            first="pml",
            later="pml-all-priors",
            name=_CHAIN,
            needs=POSTERIOR,
            source=f"{SAEIDIAN}, composition of PML",
        ),
        implies=(
            Rule(
                "information-privacy",
                f"{SAEIDIAN}, proof of Proposition 3.8",
                "max(e, -ln(1 - (e^e - 1)(1 - p_min)/p_min))",
                two_sided,
            ),
            same("divergence", f"{MAKHDOUMI}, Proposition 4 (3) for KL"),
            same("max-information", f"{WU}, Definition 7: the same number"),
            same("row-pml", f"{SAEIDIAN}, Section 4: a record is part of the database"),
            same("maximal-leakage", f"{SAEIDIAN}, Definition 2.3, averaged"),
        ),
        ceiling=at_most_rarest,
        display="headline",
    ),
    Notion(
        slug="record-pml",
        title="pointwise maximal leakage per record",
        bounds="leakage of an output about its record, under the prior",
        source=f"{SAEIDIAN}, Definition 2.6",
        scope="prior",
        display="row",
    ),
    Notion(
        slug="row-pml",
        title="leakage about the worst record",
        bounds="leakage of an output about one record, under the prior",
        source=f"{SAEIDIAN}, Section 4",
        scope="prior",
        implies=(Rule("pml", f"{SAEIDIAN}, Section 4: one record", "e if n = 1", single_record),),
    ),
    Notion(
        slug="max-information",
        title="max-information",
        bounds="ln p(x|y)/p(x) over databases and outputs, under the prior",
        source=f"{WU}, Definition 7",
        scope="prior",
        implies=(same("pml", f"{WU}, Definition 7: the same number"),),
        display="row",
    ),
    Notion(
        slug="information-privacy",
        title="information privacy",
        bounds="|ln p(x|y)/p(x)| over databases and outputs, under the prior",
        source=f"{MAKHDOUMI}, Definition 7",
        scope="prior",
        law=Law(
            notion="information-privacy",
            first="information-privacy",
            later="strong-dp",
            name="first level + later strong DP levels",
            needs=POSTERIOR,
            source=f"{MAKHDOUMI}, Proposition 4 (1), on the posterior",
        ),
        implies=(
            Rule("strong-dp", f"{MAKHDOUMI}, Proposition 4 (2)", "2 e", twice),
            same("pml", f"{SAEIDIAN}, Theorem 2.4"),
        ),
    ),
    Notion(
        slug="divergence",
        title="divergence of the posterior",
        bounds="KL divergence of the posterior from the prior, over outputs",
        source=f"{MAKHDOUMI}, Definition 7",
        scope="prior",
        law=Law(
            notion="divergence",
            first="pml",
            later="pml-all-priors",
            name=_CHAIN,
            needs=POSTERIOR,
            source="a divergence is at most the leakage",
        ),
        implies=(same("mutual-information", f"{MAKHDOUMI}, Proposition 4 (4)"),),
        ceiling=at_most_rarest,
        display="row",
    ),
    Notion(
        slug="leakage-factor",
        title="leakage factor",
        bounds="mutual information over the entropy of the prior",
        source=f"{MAKHDOUMI}, Definition 1",
        scope="prior",
        unit="share",
        information=True,
        law=additive("leakage-factor", INDEPENDENT, "mutual information over one entropy", 1.0),
        implies=(
            Rule("mutual-information", f"{MAKHDOUMI}, Definition 1", "e H(S)", times_entropy),
        ),
        ceiling=at_most_one,
    ),
    Notion(
        slug="worst-leakage-factor",
        title="worst leakage factor",
        bounds="decrease of the entropy by the worst output, over the entropy of the prior",
        source=f"{MAKHDOUMI}, Definition 7",
        scope="prior",
        unit="share",
    ),
    Notion(
        slug="error-probability",
        title="probability of a wrong guess",
        bounds="probability that the best guess of the database is wrong, from below",
        source=f"{MAKHDOUMI}, Proposition 1 (Fano)",
        scope="prior",
        unit="probability",
        direction="lower",
    ),
    Notion(
        slug="disclosure",
        title="disclosure",
        bounds="whether some output rules out a database that can occur",
        source=f"{SAEIDIAN}, Definition 3.3 and Proposition 3.8",
        scope="prior",
        unit="",
    ),
    Notion(
        slug="distortion",
        title="expected distortion",
        bounds="expected number of records in which output and database differ",
        source=f"expected Hamming distance; {WANG}",
        scope="prior",
        unit="rows",
    ),
    Notion(
        slug="maximal-correlation",
        title="maximal correlation",
        bounds="correlation of a function of the database with a function of the output",
        source=f"{MAKHDOUMI}, Definition 5",
        scope="prior",
        unit="",
        implies=(
            Rule(
                "mutual-information",
                "chi-square divergence of the joint distribution",
                "ln(1 + e^2 (1/p_min - 1))",
                correlated,
            ),
        ),
        ceiling=at_most_one,
    ),
    Notion(
        slug="sdpi",
        title="strong data-processing constant",
        bounds="I(S; Y)/I(S; X) over all secrets S, under the prior",
        source=f"{MAKHDOUMI}, Definition 4",
        scope="prior",
        unit="share",
        implies=(
            same("leakage-factor", f"{MAKHDOUMI}, Definition 4: I(S; Y) <= e I(S; X) <= e H(S)"),
            Rule("maximal-correlation", f"{MAKHDOUMI}, Theorem 1", "sqrt(e)", root),
        ),
        ceiling=at_most_one,
    ),
    Notion(
        slug="constrained-capacity",
        title="individual capacity at an entropy",
        bounds="mutual information of one record and output, over priors of at least some entropy",
        source=f"{WU}, Definition 5 with Assumption 3",
        scope="prior",
        information=True,
        law=Law(
            notion="constrained-capacity",
            first="constrained-capacity",
            later="individual-capacity",
            name="first level + later individual capacities",
            needs=POSTERIOR,
            source="chain rule: a posterior may have less entropy than the prior; "
            "``constrained_composition_bound`` counts how much less",
        ),
    ),
)

FACTS = (
    Notion(
        slug="entropy",
        title="entropy",
        bounds="H(X)",
        source="Shannon",
        scope="facts",
    ),
    Notion(
        slug="min-entropy",
        title="min-entropy",
        bounds="-ln max_x p(x)",
        source="Renyi",
        scope="facts",
    ),
    Notion(
        slug="epsilon-x",
        title="eps_X",
        bounds="ln p(x)/p(x') over neighbours x, x'",
        source=f"{WANG}, eq. (16)",
        scope="facts",
    ),
    Notion(
        slug="epsilon-hat",
        title="eps_hat",
        bounds="the smallest epsilon from which on E_d is optimal",
        source="randomised response (E_d) is optimal from here on",
        scope="facts",
    ),
    Notion(
        slug="epsilon-tilde",
        title="eps_tilde",
        bounds="the smallest epsilon from which on E_i exists",
        source=f"{WANG}, Section 3",
        scope="facts",
    ),
    Notion(
        slug="disclosure-threshold",
        title="disclosure threshold",
        bounds="the leakage below which no output rules out a database",
        source=f"{SAEIDIAN}, Proposition 3.8",
        scope="facts",
        direction="lower",
    ),
)

#: Notions that are also measured about S, with their titles and sources there.
_TITLES = {
    "mutual-information": ("mutual information with S", f"{MAKHDOUMI}, Definition 1"),
    "pml": ("leakage about S", f"{SAEIDIAN}, Definition 2.3"),
    "information-privacy": ("information privacy of S", f"{MAKHDOUMI}, Definition 7"),
    "strong-dp": ("differential privacy of S", f"{MAKHDOUMI}, Definition 7"),
    "maximal-leakage": ("maximal leakage about S", f"{ISSA}, Theorem 1"),
    "leakage-factor": ("leakage factor of S", f"{MAKHDOUMI}, Definition 1"),
    "worst-leakage-factor": ("worst leakage factor of S", f"{MAKHDOUMI}, Definition 7"),
    "error-probability": (
        "probability of a wrong guess of S",
        f"{MAKHDOUMI}, Proposition 1 (Fano)",
    ),
}


def _about_secret(notion: Notion) -> Notion:
    """Return the same notion of the channel from S to the output, without a composition rule."""
    title, source = _TITLES[notion.slug]
    return replace(
        notion,
        slug=f"secret-{notion.slug}",
        title=title,
        bounds=f"{notion.slug} of the channel from S to the output",
        source=source,
        scope="secret",
        law=None,
        implies=(),
        display="headline" if notion.slug == "pml" else "bar",
    )


_DECLARED = {notion.slug: notion for notion in (*MECHANISM, *UNDER_PRIOR)}

ABOUT_SECRET = tuple(_about_secret(_DECLARED[slug]) for slug in _TITLES)

#: Every notion by its slug, in the order in which notions are shown.
NOTIONS: Mapping[str, Notion] = MappingProxyType(
    {notion.slug: notion for notion in (*MECHANISM, *UNDER_PRIOR, *ABOUT_SECRET, *FACTS)}
)

#: Notions that imply others or follow from others; a guarantee may be given in them.
RELATED = tuple(
    slug
    for slug, notion in NOTIONS.items()
    if notion.implies
    or any(rule.conclusion == slug for each in NOTIONS.values() for rule in each.implies)
)

#: Notions whose best mechanisms can be computed: the keys of PROGRAMS in ``design/registry.py``.
DESIGNED = ("dp", "individual-capacity", "identifiability", "mutual-information", "pml")

#: Those of Wang-Ying-Zhang 2015, which curves compare by default: they scale to long priors.
COMPARED = tuple(slug for slug in DESIGNED if NOTIONS[slug].source.startswith(WANG))
