"""Laws and integer weights that the tests of samplers share."""

import numpy as np
from hypothesis import strategies as st

WORDS = 1 << 64


tiny = st.floats(0.0, 1.0) | st.sampled_from([0.0, 5e-324, 1e-310, 2.0**-64, 3 * 2.0**-66, 1e-30])


@st.composite
def laws(draw, size=None):
    found = np.array(draw(st.lists(tiny, min_size=size or 1, max_size=size or 12)))
    if found.sum() == 0:
        found[draw(st.integers(0, len(found) - 1))] = 1.0
    return found / found.sum() if found.sum() > 1e-300 else found * 2.0**1000 / 1.0


def realised(thresholds):
    """Integer weights as whole numbers, 2^64 included."""
    rows = [[int(w) for w in row] for row in thresholds.weights]
    return [
        [WORDS if sum(row) == 0 and y == last else w for y, w in enumerate(row)]
        for row, last in zip(rows, thresholds._last, strict=True)
    ]
