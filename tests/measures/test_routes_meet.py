"""Brackets of one quantity by several routes, which once excluded each other."""

import pytest

import fastpriv as fp


def _columns(epsilon):
    return [fp.HammingChannel(1, 2, epsilon), fp.UnaryChannel(2, epsilon)]


@pytest.mark.parametrize("epsilon", [9.9e-11, 3.3e-9, 1.7e-7])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: fp.UnaryChannel(2, e),
        lambda e: fp.UnaryChannel(3, e),
        lambda e: fp.HadamardChannel(3, e),
        lambda e: fp.HashingChannel(4, e),
        lambda e: fp.SubsetChannel(3, e),
        lambda e: fp.RecordChannel(fp.ColumnsChannel(_columns(e))),
        lambda e: fp.RecordChannel(fp.HammingChannel(2, 2, e)),
    ],
    ids=["unary", "three", "hadamard", "hashing", "subset", "columns", "record"],
)
def test_one_record_has_the_capacity_of_the_channel(make, epsilon):
    channel = make(epsilon)
    whole, alone = fp.channel_capacity(channel), fp.individual_capacity(channel)
    assert whole.lower <= alone.upper
    assert alone.lower <= whole.upper
    assert alone.width < 1e-2 * alone.upper  # and it still says something


def test_a_ball_of_radius_zero_keeps_what_is_rare():
    matrix, centre = [[0.5, 0.5], [1.0, 0.0]], [1e-58, 1.0]
    alone = fp.pml_level(matrix, centre)
    assert fp.pml_level(matrix, fp.PriorSet.total_variation(centre, 0.0)) <= alone * (1 + 1e-12)
