"""How many reports there are, and which column of the matrix is which report."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.errors import TooLarge

SUBSETS = [(4, 1), (5, 2), (6, 3), (7, 6)]


@pytest.mark.parametrize(("k", "size"), SUBSETS)
def test_columns_of_subsets_are_combinations(k, size):
    channel = fp.SubsetChannel(k, 1.0, size=size)
    listed = [list(held) for held in itertools.combinations(range(k), size)]
    assert channel.output_count == len(listed) == channel.matrix().shape[1]
    assert [channel.output_row(y).tolist() for y in range(len(listed))] == listed
    assert [channel.column_index(np.array(held)) for held in listed] == list(range(len(listed)))


def test_columns_side_by_side():
    bits = [[0.75, 0.25], [0.25, 0.75]]
    channel = fp.ColumnsChannel([fp.SubsetChannel(4, 1.0, size=2), fp.Channel(bits)])
    outputs = [[*held, bit] for held in itertools.combinations(range(4), 2) for bit in range(2)]
    for acting in (channel, fp.RecordChannel(channel)):
        assert acting.output_count == 12 == acting.matrix().shape[1]
        assert [acting.output_row(y).tolist() for y in range(12)] == outputs
        assert [acting.column_index(np.array(output)) for output in outputs] == list(range(12))
    assert channel.output(fp.Uniform(2, [4, 2])).space.size == 12


def test_audits_count_and_name_reports():
    channel, prior = fp.SubsetChannel(4, 1.0, size=2), [0.1, 0.2, 0.3, 0.4]
    audit = fp.audit(channel, prior, joint=np.diag(prior))
    assert audit.summary == "4 databases of 1 record, 6 outputs"
    assert audit.to_dict()["outputs"] == "6"
    assert "0 of 6 outputs" in audit.levels["ruling-out"].meaning
    matrix = channel.matrix()
    named = [level.worst for level in audit.levels.values() if isinstance(level.worst, fp.Witness)]
    assert len(named) > 4
    for worst in named:
        assert worst.output[0] < worst.output[1]  # a report lists its values in order
        column = matrix[:, channel.column_index(worst.output)]
        if audit.levels["secret-pml"].worst is not worst:
            assert column[worst.database[0]] == column.max()


def test_outputs_by_their_number():
    channel, prior = fp.SubsetChannel(4, 1.0, size=2), [0.1, 0.2, 0.3, 0.4]
    every = fp.pml(channel, prior)
    for y, held in enumerate(itertools.combinations(range(4), 2)):
        assert fp.pml(channel, prior, y=y) == pytest.approx(every[y], rel=1e-14)
        assert fp.pml(channel, prior, y=list(held)) == pytest.approx(every[y], rel=1e-14)
    with pytest.raises(fp.InvalidInput, match="below the number of outputs 6; got 6"):
        fp.pml(channel, prior, y=6)


def test_reports_beyond_any_list_are_counted_in_powers_of_two():
    channel = fp.SubsetChannel(1000, 1.0, size=500)
    assert channel.output_count.bit_length() == math.comb(1000, 500).bit_length()
    with pytest.raises(TooLarge, match=r"about 2\^"):
        channel.matrix()
