"""Messages about integers of hundreds or thousands of digits, which are not written out."""

import pytest

import fastpriv as fp

W = [[0.75, 0.25], [0.25, 0.75]]
PAIR = fp.Channel([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]], fp.Space([2, 2]))
CALLS = [
    lambda n: fp.group_capacity(PAIR, n),
    lambda n: fp.constrained_capacity(PAIR, 0.5, k=n),
    lambda n: fp.group_bound(PAIR, n),
    lambda n: fp.row_pml(PAIR, fp.Uniform(2, 2), n),
    lambda n: fp.conditional_pml(PAIR, fp.Uniform(2, 2), {0: n}),
    lambda n: fp.gains.tries(3, n),
    lambda n: fp.HashingChannel(3, 1.0, n),
    lambda n: fp.SubsetChannel(3, 1.0, n),
    lambda n: fp.HadamardChannel(3, 1.0, n),
    lambda n: fp.implications(1.0, "dp", prior=fp.Uniform(2, 2), n=n),
    lambda n: fp.threshold_query_bound(5, n, 0.6, True),
    lambda n: fp.accounting.PrivacyProfile.discrete_laplace(1.0, n),
    lambda n: fp.accounting.shuffled(W, n),
    lambda n: fp.accounting.Ledger({"dp": 9.0}).spend(W, count=n),
]


@pytest.mark.parametrize("number", [10**400, 10**5000], ids=["400", "5000"])
@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_a_huge_integer_is_refused_in_a_short_sentence(call, number):
    with pytest.raises(fp.FastprivError) as refused:
        call(number)
    assert len(str(refused.value)) < 300


def test_unknown_notions_are_refused_in_a_short_sentence():
    with pytest.raises(fp.InvalidInput, match="slugs that audits measure") as refused:
        fp.audit(W, notions=["dq"])
    assert len(str(refused.value)) < 300


def test_distortion_of_noise_below_the_doubles_is_refused():
    with pytest.raises(fp.InvalidInput, match="distortion must be"):
        fp.mechanisms.GaussianNoise([[1.0, 0.5], [0.5, 1.0]], 5e-324)
