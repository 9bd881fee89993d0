"""What is too large about a box of rows is said in its own unit."""

import numpy as np
import pytest

import fastpriv as fp


def test_too_many_corners_are_counted_as_channels():
    channel = fp.Channel(np.random.default_rng(1).dirichlet(np.ones(3), 3**7), [3] * 7)
    box = fp.PriorSet.row_box([0.2, 0.2, 0.1], [0.8, 0.5, 0.6], 7)
    with pytest.raises(fp.TooLarge, match="at most 4,096 are searched") as refusal:
        fp.individual_capacity(channel, box)
    assert "bytes" not in str(refusal.value)
