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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RandomizedResponse", "; did you mean HammingChannel?"),
        ("Gaussian", "; did you mean fastpriv.mechanisms.GaussianNoise?"),
        ("accounting.PrivacyProfiles", "; did you mean PrivacyProfile?"),
        ("plot.tradeof", "; did you mean tradeoff?"),
    ],
)
def test_names_of_other_texts_and_folders_have_hints(name, words):
    folder, _, last = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute '{last}'") as caught:
        getattr(getattr(fp, folder) if folder else fp, last)
    assert str(caught.value).endswith(words)


def test_adapters_load_when_they_are_named():
    import fastpriv.adapters

    assert fastpriv.adapters.opacus.__name__ == "fastpriv.adapters.opacus"

    with pytest.raises(AttributeError, match="jax"):
        _ = fastpriv.adapters.jax


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fp.HammingChannel(3, 2, "1"), "Give it without quotes, as 1."),
        (lambda: fp.Space.hamming(2.5, 2), "Round it, such as to 3."),
        (
            lambda: fp.accounting.PrivacyProfile.gaussian(1.0, 256),
            "Divide a percentage by 100, or a count by its total.",
        ),
        (lambda: fp.audit([[1.0, 0.0], [0.0, 1.0]], prior="uniform"), "fastpriv.Uniform"),
        (lambda: fp.accounting.PrivacyProfile(1.0), "PrivacyProfile.gaussian"),
        (
            lambda: fp.release(["no"], domain=["no", "yes"], epsilon=1.0),
            "Name the column of the values.",
        ),
        (
            lambda: fp.release([["no"], ["yes"]], domain={"a": ["no", "yes"]}, epsilon=1.0),
            "a list of dicts",
        ),
        (
            lambda: fp.release([{"a": "no"}], domain={"A": ["no", "yes"]}, epsilon=1.0),
            "did you mean a",
        ),
    ],
)
def test_messages_name_one_action(call, words):
    with pytest.raises(fp.InvalidInput) as caught:
        call()
    assert words in str(caught.value)
