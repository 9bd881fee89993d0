"""The pages about the papers: nothing left out, and every call in them exists as written."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import fastpriv as fp
from fastpriv.channels import AbstractChannel

PAGES = Path(__file__).parents[2] / "docs" / "papers"


def numbered(kind, last):
    return [f"{kind} {k}" for k in range(1, last + 1)]


#: Every numbered statement of each paper, as its text numbers them.
STATEMENTS = {
    "wang-ying-zhang-2015": [
        *numbered("Definition", 4),
        *numbered("Theorem", 2),
        *numbered("Lemma", 5),
        *numbered("Claim", 2),
        *numbered("Figure", 3),
        *("PD-I", "PD-DP", "R-PD", "PD-MIP"),
    ],
    "wang-ying-zhang-poster": [
        *numbered("Main Result", 2),
        *("PD-I", "PD-DP", "R-PD", "PD-MIP"),
    ],
    "makhdoumi-fawaz-2013": [
        *numbered("Definition", 7),
        *numbered("Theorem", 4),
        *numbered("Proposition", 4),
        *(f"Proposition 4 ({k})" for k in range(1, 6)),
        *numbered("Corollary", 2),
        *numbered("Lemma", 2),
        *numbered("Example", 5),
        *("Note 1", "Gaussian mechanism", "Discrete noise mechanism"),
        *("(2)", "(5), (8)", "(7)", "(9)", "(10), (11)", "(12)"),
    ],
    "wu-xia-he-2020": [
        *numbered("Definition", 24),
        *numbered("Theorem", 6),
        *numbered("Proposition", 8),
        *numbered("Corollary", 6),
        *numbered("Lemma", 7),
        *numbered("Assumption", 3),
        *numbered("Figure", 2),
        "Example 1",
    ],
    "saeidian-2024": [
        *(f"Definition {k}" for k in (2.1, 2.2, 2.3, 2.5, 2.6, 2.7, 3.3, 3.9, 4.1, 4.4)),
        *(f"Theorem {k}" for k in (2.4, 2.8, 3.4, 3.5, 3.7, 4.2, 4.3, 4.5)),
        *(f"Proposition {k}" for k in (3.6, 3.8, 4.6)),
        *(f"Example {k}" for k in (3.1, 3.2, 3.11)),
        *("Corollary 3.10", "Remark B.1", "Figure 1"),
    ],
}

#: What the words before a dot stand for in calls of methods.
OBJECTS = {
    "prior": fp.Distribution,
    "channel": AbstractChannel,
    "space": fp.Space,
    "joint": fp.Joint,
}


def text(page):
    return (PAGES / f"{page}.md").read_text(encoding="utf-8")


def rows(page):
    """Cells of the tables of a page, without their heads."""
    lines = [line for line in text(page).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] and not row[0].startswith("-")]


def calls(page):
    """Code in the tables and lists of a page that is a call or a name of the library."""
    prose = re.sub(r"^```.*?^```", "", text(page), flags=re.DOTALL | re.MULTILINE)
    starts = ("fp.", *(f"{name}." for name in OBJECTS))
    return [code for code in re.findall(r"`([^`]+)`", prose) if code.startswith(starts)]


def resolve(path):
    """Return what a dotted name names."""
    head, *names = path.split(".")
    thing = fp if head == "fp" else OBJECTS[head]
    for name in names:
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize("page", STATEMENTS)
def test_every_statement_has_a_row(page):
    found = " ; ".join(row[0] for row in rows(page))
    missing = [s for s in STATEMENTS[page] if not re.search(re.escape(s) + r"(?![.\w])", found)]
    assert not missing


@pytest.mark.parametrize("page", STATEMENTS)
def test_every_row_says_what_and_how(page):
    for row in rows(page):
        assert len(row) == 3, row
        assert all(row), row


@pytest.mark.parametrize("page", STATEMENTS)
def test_every_call_has_the_arguments_it_is_shown_with(page):
    found = calls(page)
    assert len(found) > (20 if page != "wang-ying-zhang-poster" else 10)
    for code in found:
        tree = ast.parse(code, mode="eval").body
        if not isinstance(tree, ast.Call):
            resolve(code)
            continue
        path = ast.unparse(tree.func)
        parameters = list(inspect.signature(resolve(path)).parameters)
        if not path.startswith("fp."):  # a method, shown without its object
            parameters = parameters[1:]
        given = [arg.value if isinstance(arg, ast.Starred) else arg for arg in tree.args]
        assert [ast.unparse(arg) for arg in given] == parameters[: len(given)], code
        assert {keyword.arg for keyword in tree.keywords} <= set(parameters), code


def names(page):
    return set(re.findall(r"\bfp((?:\.[A-Za-z_]\w*)+)", text(page)))


@pytest.mark.parametrize("page", STATEMENTS)
def test_every_name_exists(page):
    assert all(resolve("fp" + name) is not None for name in names(page))


def test_index_lists_the_pages():
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert all(f"\n{page}\n" in index for page in STATEMENTS)
