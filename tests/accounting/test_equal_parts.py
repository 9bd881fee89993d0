"""Equal channels are one kind of release: composing them is counting."""

import numpy as np

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile

MATRIX = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]


def test_equal_channels_are_counted():
    whole = PrivacyProfile({})
    for _ in range(50):
        whole = whole.compose(PrivacyProfile.of(fp.Channel(np.array(MATRIX))))
    counted = PrivacyProfile.of(MATRIX).self_compose(50)
    assert repr(whole) == repr(counted)
    assert whole.epsilon(1e-6) == counted.epsilon(1e-6)
    assert whole.delta(1.0) == counted.delta(1.0)


def test_channels_that_differ_stay_apart():
    # The curves are the same, but not which neighbours attain them.
    swapped = [MATRIX[1], MATRIX[0]]
    both = PrivacyProfile.of(MATRIX).compose(PrivacyProfile.of(swapped))
    assert len(both.parts) == 2
