"""Messages about extended floats of numpy, whose items are extended floats again."""

import numpy as np
import pytest

import fastpriv as fp


@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_an_extended_float_is_written_as_a_number(kind):
    with pytest.raises(fp.InvalidInput, match="n must be an integer; got"):
        fp.Product.iid([0.5, 0.5], kind(2))
