"""Notions whose level holds whatever the law of the database."""

from __future__ import annotations

from fastpriv.notions.law import ADAPTIVE, additive
from fastpriv.notions.notion import Notion
from fastpriv.notions.papers import ISSA, MAKHDOUMI, SAEIDIAN, WANG, WU
from fastpriv.notions.rules import Rule, capacity_bound, groups, plus_epsilon_x, same

#: Deltas of (epsilon, delta)-differential privacy that audits ask for.
DELTAS = (1e-3, 1e-6, 1e-9)

_CHORDS = "divergence from the least probabilities, by a chord"
_RATIOS = "likelihood ratios multiply"


def _at_delta(delta: float) -> Notion:
    name = f"{delta:.0e}".replace("e-0", "e-")
    return Notion(
        slug=f"approximate-dp-{name}",
        title=f"differential privacy at delta {name}",
        bounds=f"epsilon of (epsilon, delta)-DP at delta {name}",
        source=f"{MAKHDOUMI}, Definition 7",
        measure="hockey_stick_epsilon",
        arguments=(delta,),
        display="row",
    )


MECHANISM = (
    Notion(
        slug="dp",
        title="differential privacy",
        bounds="ln p(y|x)/p(y|x') over neighbours x, x'",
        source=f"{WANG}, Definition 3",
        measure="dp_level",
        law=additive("dp", ADAPTIVE, _RATIOS),
        implies=(
            Rule("strong-dp", "group privacy, one row at a time", "n e", groups),
            same("approximate-dp", f"{MAKHDOUMI}, Proposition 4 (5)"),
            same("product-row-pml", f"{SAEIDIAN}, Theorem 4.2 (3)"),
            same("product-row-max-information", f"{WU}, Theorem 1"),
            Rule("product-row-information", _CHORDS, "psi(e)", capacity_bound),
            Rule("identifiability", f"{WANG}, Theorem 1 (eq. 25)", "e + eps_X", plus_epsilon_x),
        ),
        program="solve_pd_dp",
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
        measure="dp_level",
        law=additive("approximate-dp", ADAPTIVE, f"{_RATIOS}; deltas add too"),
        display="row",
    ),
    *map(_at_delta, DELTAS),
    Notion(
        slug="realised-dp",
        title="differential privacy of draws",
        bounds="ln of the ratio of the probabilities that sample() draws with, over neighbours",
        source="integer thresholds of the sampler",
        measure="realised_level",
        display="row",
    ),
    Notion(
        slug="strong-dp",
        title="strong differential privacy, leakage capacity",
        bounds="ln p(y|x)/p(y|x') over all databases x, x' (local, free-lunch)",
        source=f"{MAKHDOUMI}, Definition 7; {SAEIDIAN}, Definition 2.7",
        measure="strong_dp_level",
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
        title="leakage about one row, rows independent",
        bounds="leakage of an output about one row, over all priors with independent rows",
        source=f"{SAEIDIAN}, Theorem 4.2",
        measure="dp_level",
        law=additive("product-row-pml", ADAPTIVE, f"{SAEIDIAN}, Theorem 4.2: it is the DP level"),
        implies=(same("dp", f"{SAEIDIAN}, Theorem 4.2 (3)"),),
        display="row",
    ),
    Notion(
        slug="product-row-max-information",
        title="max-information about one row, rows independent",
        bounds="max-information of one row and output, over the same priors",
        source=f"{WU}, Definition 8",
        measure="dp_level",
        law=additive("product-row-max-information", ADAPTIVE, f"{WU}, Theorem 1: the DP level"),
        implies=(
            same("dp", f"{WU}, Theorem 1"),
            same("product-row-information", f"{WU}, Corollary 1"),
        ),
        display="row",
    ),
    Notion(
        slug="product-row-information",
        title="mutual information about one row, rows independent",
        bounds="mutual information of one row and output, over the same priors",
        source=f"{WU}, Corollary 1",
        measure="dp_level",  # an upper bound
        law=additive("product-row-information", ADAPTIVE, "chain rule given the other rows"),
        display="row",
    ),
    Notion(
        slug="pml-all-priors",
        title="pointwise maximal leakage over all priors",
        bounds="leakage of an output about the database, over all priors",
        source=f"{SAEIDIAN}, Definition 2.7",
        measure="strong_dp_level",
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
        title="max-information about one row",
        bounds="max-information of one row and output, over all priors",
        source=f"{WU}, Definition 8",
        measure="max_individual_capacity",
        display="row",
    ),
    Notion(
        slug="maximal-leakage",
        title="maximal leakage",
        bounds="ln of the sum over y of max_x p(y|x), x in the support of the prior",
        source=f"{ISSA}, Theorem 1",
        measure="maximal_leakage",
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
        measure="channel_capacity",
        information=True,
        implies=(
            same("individual-capacity", f"{WU}, Section 3: a row is part of the database"),
            same("mutual-information", "the largest over all priors"),
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
        bounds="mutual information of one row and output, over all priors",
        source=f"{WU}, Definition 5",
        measure="individual_capacity",
        information=True,
        law=additive(
            "individual-capacity",
            ADAPTIVE,
            f"{WU}, Theorem 5: one data set; ``two_dataset_bound`` for several. The chain rule: "
            "what was seen before is another prior",
        ),
        implies=(same("product-row-information", f"{WU}, Definition 5: fewer priors"),),
        program="solve_pd_capacity",
        display="headline",
    ),
    Notion(
        slug="group-capacity",
        title="capacity about a group",
        bounds="mutual information of a group of rows and output, over all priors",
        source=f"{WU}, Definition 17",
        information=True,
        display="row",
    ),
    Notion(
        slug="contraction",
        title="contraction coefficient",
        bounds="I(S; Y)/I(S; X) over all secrets S and all priors",
        source=f"{MAKHDOUMI}, Theorem 1 and (7)",
        measure="contraction_coefficient",
        unit="share",
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
        measure="singles_out",
        unit="",
    ),
)
