"""The search over small trees decides cases, and notices bounds on the wrong side."""

import pytest

from fastpriv.results import Bracket
from fuzz import trees


@pytest.mark.search
def test_no_tree_is_on_the_wrong_side():
    counts, broken, _ = trees.search(3, 5.0, 300, 0, 1)
    assert not broken
    assert counts["checked"] == 300


@pytest.mark.parametrize("above", [False, True])
def test_a_wrong_digit_is_noticed(monkeypatch, above):
    case = {
        "parts": [(("response", 3, 0.7), 2), (("channel", 0.3, 0.6), 1)],
        "epsilon": 0.5,
        "delta": 1e-3,
        "adaptive": False,
        "order": 1,
    }
    assert trees.judged(case) == []
    plain = trees.composed(case).delta(0.5, adaptive=False)
    wrong = Bracket(0.0, plain.lower * (1.0 - 1e-14))
    if above:
        wrong = Bracket(plain.upper * (1.0 + 1e-14), 1.0)

    class Moved:
        def delta(self, t, adaptive):
            return wrong

        def epsilon(self, delta, adaptive):
            return Bracket(0.0, float("inf"))

    monkeypatch.setattr(trees, "composed", lambda case: Moved())
    assert len(trees.judged(case)) == 1


def test_noise_beside_a_finite_mechanism_is_its_curve_given_each_outcome():
    truth = trees.Truth(
        {"parts": [(("declared", 0.0, 0.25), 1), (("laplace", 2.0), 1)], "adaptive": True}
    )
    assert not truth.exceeds(0.2, 0.25 + 0.75 * 0.1392920236 + 1e-9)
    assert truth.exceeds(0.2, 0.25 + 0.75 * 0.1392920236 - 1e-9)
