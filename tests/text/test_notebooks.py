"""Results show themselves as tables in notebooks: escaped, short, and rounded to the safe side."""

import html.parser

import numpy as np
import pytest

import fastpriv as fp

PROFILE = fp.accounting.PrivacyProfile


def estimated():
    released = fp.release(np.repeat([0, 1], 200), domain=2, epsilon=2.0, rng=1)
    return fp.estimate_frequencies(released)


RESULTS = {
    "Solution": lambda: fp.solve_pd_dp(fp.Uniform(3, 2), 1.0),
    "Frequencies": estimated,
    "Bracket": lambda: fp.Bracket(1.0, 2.0),
    "PrivacyProfile": lambda: PROFILE.gaussian(1.1, 0.01).self_compose(100),
    "Ledger": lambda: fp.accounting.Ledger({"dp": 1.0}),
    "TradeoffCurve": lambda: fp.tradeoff_curve(fp.Uniform(3, 2), points=3),
    "Implications": lambda: fp.implications(0.5, "dp"),
    "Comparison": lambda: fp.compare(np.eye(2), np.full((2, 2), 0.5), notions=["dp"]),
}


class Cells(html.parser.HTMLParser):
    """The texts of the cells, row by row; tags must close in order."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_table(name):
    head, *rows = Cells(RESULTS[name]()._repr_html_()).rows
    assert rows
    assert all(len(row) == len(head) for row in rows)


def test_bounds_are_rounded_outwards():
    third = fp.Solution(2 / 3, 1 / 3, fp.Channel(np.eye(2)), 1 / 3, "dense")
    head, row = Cells(third._repr_html_()).rows
    shown = dict(zip(head, row, strict=True))
    assert float(shown["bound"]) <= 1 / 3 <= float(shown["level"])
    assert float(shown["value"]) >= 2 / 3


def test_what_a_ledger_spent():
    ledger = fp.accounting.Ledger({"dp": 1.0})
    ledger.spend({"dp": 0.25}, label="<b>first</b>")
    assert Cells(ledger._repr_html_()).rows == [["notion", "spent", "budget"], ["dp", "0.25", "1"]]
    both = fp.accounting.Ledger({"approximate-dp": (3.0, 1e-6)})._repr_html_()
    assert Cells(both).rows[1] == ["approximate-dp", "0", "3 at delta 1e-06"]
    ledger.close()
    assert "closed" in ledger._repr_html_()


def test_long_tables_say_what_they_leave_out():
    long = fp.tradeoff_curve(fp.Uniform(3, 2), ["dp"], points=30)._repr_html_()
    assert len(Cells(long).rows) == 21
    assert "and 10 more rows" in long


@pytest.mark.parametrize(
    ("profile", "title"),
    [
        (PROFILE.gaussian(2.0), "Gaussian noise, multiplier 2"),
        (PROFILE.gaussian(2.0, relation="replace-one"), "Gaussian noise, multiplier 1"),
        (
            PROFILE.gaussian(2.0, 0.25).self_compose(3),
            "3 x Gaussian noise, multiplier 2, sampled with probability 0.25",
        ),
        (PROFILE.laplace(2.0), "Laplace noise, multiplier 2"),
        (PROFILE.from_epsilon_delta(1.0, 1e-6), "(1, 1e-06)-DP"),
        (PROFILE.of([[0.9, 0.1], [0.2, 0.8]]), "Channel(Space.hamming(n=1, m=2) -> 2 outputs)"),
        (PROFILE.zcdp(0.5), "zCDP 0.5"),
        (
            fp.accounting.shuffled(fp.HammingChannel(1, 2, 1.0), 100),
            "messages of 100 users, shuffled",
        ),
    ],
)
def test_titles_of_profiles(profile, title):
    assert profile.title == title


def test_profiles_are_written_by_kinds_and_counts():
    assert repr(PROFILE.gaussian(2.0).self_compose(1000)) == (
        "PrivacyProfile(1,000 x Gaussian noise, multiplier 2; relation='add-or-remove')"
    )
