"""The nearest name is offered before a list of names."""

import pytest

import fastpriv as fp


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shuffled", "; it is fastpriv.accounting.shuffled"),
        ("Ledger", "; it is fastpriv.accounting.Ledger"),
        ("GeometricCount", "; it is fastpriv.mechanisms.GeometricCount"),
        ("dp_levle", "; did you mean dp_level?"),
        ("E_d", "; did you mean HammingChannel?"),
    ],
)
def test_misplaced_names_are_found(name, words):
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(fp, name)
    assert str(caught.value).endswith(words)


def test_other_names_are_not():
    assert not hasattr(fp, "nothing_like_it_at_all")
    assert not hasattr(fp, "_private")


@pytest.mark.parametrize(
    ("word", "near"), [("epsilon", "dp"), ("identifiabilty", "identifiability")]
)
def test_the_nearest_notion_comes_before_the_list(word, near):
    with pytest.raises(
        fp.InvalidInput, match=f"^unknown notion '{word}'; did you mean {near}"
    ) as e:
        fp.implications(0.5, word)
    assert str(e.value).index(near) < str(e.value).index("one of")


def test_an_unknown_level_of_an_audit_has_a_hint_or_the_list():
    audit = fp.audit([[0.75, 0.25], [0.25, 0.75]], notions=["dp", "maximal-leakage"])
    for word, near in (
        ("epsilon", "dp"),
        ("differential privacy", "dp"),
        ("maximal-leakge", "leakage"),
    ):
        with pytest.raises(KeyError, match="not a notion of this audit") as caught:
            audit[word]
        assert str(caught.value).endswith("?")
        assert near in str(caught.value)
        assert "one of" not in str(caught.value)
    with pytest.raises(KeyError, match="it must be one of dp, maximal-leakage"):
        audit["xyz"]
