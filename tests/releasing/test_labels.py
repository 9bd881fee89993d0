"""Lists of labels as tables of one column, and releases that depend on nothing."""

import pytest

import fastpriv as fp


@pytest.mark.parametrize("name", ["answer", "value"])
def test_a_list_of_labels_is_one_column(name):
    labels = ["yes", "no", "yes", "yes"] * 30
    released = fp.release(labels, domain={name: ["yes", "no"]}, epsilon=700.0)
    assert released.table == labels
    estimate = fp.estimate_frequencies(released.table, released.report)
    assert estimate.n == len(labels)
    assert name in estimate.columns


def test_missing_labels_and_wrong_ones():
    released = fp.release(["a", None] * 5, domain={"c": ["a", None]}, epsilon=700.0)
    assert released.table == ["a", None] * 5
    with pytest.raises(fp.InvalidInput, match="'c', which its domain does not list"):
        fp.release(["a", "b"], domain={"c": ["a"]}, epsilon=1.0)
    with pytest.raises(fp.InvalidInput, match="1 columns, the domain 2"):
        fp.release(["a", "b"], domain={"c": ["a"], "d": ["b"]}, epsilon=1.0)
    with pytest.raises(fp.InvalidInput, match="domain"):
        fp.release(["a", "b"], epsilon=1.0)


@pytest.mark.parametrize("records", [1, 50, 200])
def test_what_depends_on_nothing_is_refused(records):
    labels, domain = ["yes", "no"] * records, {"answer": ["yes", "no"]}
    with pytest.raises(fp.Infeasible, match="nothing can be learnt"):
        fp.release(labels, domain=domain, epsilon=0.0)
    assert len(fp.release(labels, domain=domain, epsilon=0.0, accept="useless").table)
