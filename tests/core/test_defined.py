"""Channels and priors are equal by value, hash alike, and survive JSON float for float."""

import json
import pickle

import numpy as np
import pytest

import fastpriv as fp

RNG = np.random.default_rng(1)


def stochastic(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


PRIORS = {
    "dense": lambda: fp.Dense(stochastic(1, 6)[0], [2, 3]),
    "uniform": lambda: fp.Uniform(4, 3),
    "product": lambda: fp.Product([[0.2, 0.8], [0.1, 0.3, 0.6], [0.2, 0.8]]),
    "iid": lambda: fp.Product.iid([0.3, 0.7], 1_000_000),
    "bits": lambda: fp.Exchangeable.beta_binomial(5, 0.5, 0.8),
    "types": lambda: fp.Exchangeable({(2, 0, 0): 0.5, (1, 1, 0): 0.25, (0, 1, 1): 0.25}),
    "markov": lambda: fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 4),
    "hidden": lambda: fp.HammingChannel(3, 2, 1.0).output(
        fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 3)
    ),
}
CHANNELS = {
    "matrix": lambda: fp.Channel(stochastic(4, 3), [2, 2]),
    "hamming": lambda: fp.HammingChannel(3, [2, 3, 2], 0.7),
    "wide": lambda: fp.HammingChannel(1_000_000, 4, 0.7),
    "product": lambda: fp.ProductChannel([stochastic(2, 3), stochastic(3, 2, 1), stochastic(2, 3)]),
    "posterior": lambda: fp.PosteriorChannel(fp.Product.iid([0.4, 0.6], 3), 1.0),
    "tilted": lambda: fp.TiltedChannel(fp.Dense(stochastic(1, 4)[0], [2, 2]), 0.5),
    "query": lambda: fp.QueryChannel([0, 1, 1, 2], stochastic(3, 2), [2, 2]),
    "count": lambda: fp.QueryChannel.count(30, stochastic(31, 2)),
    "sum": lambda: fp.QueryChannel.sum([[0, 2], [0, 1, 3]], stochastic(6, 2)),
    "histogram": lambda: fp.QueryChannel.histogram(3, 3, stochastic(10, 4)),
    "types": lambda: fp.solve_pd_dp(fp.Exchangeable.beta_binomial(4, 0.5, 0.8), 0.5).channel,
}


@pytest.mark.slow(only=["channel-wide"])
@pytest.mark.parametrize(
    ("family", "name"),
    [*[("prior", name) for name in PRIORS], *[("channel", name) for name in CHANNELS]],
)
def test_equal_by_value_and_through_json(family, name):
    make = (PRIORS if family == "prior" else CHANNELS)[name]
    one, two = make(), make()
    assert one is not two
    assert one == two
    assert hash(one) == hash(two)
    base = fp.Distribution if family == "prior" else fp.AbstractChannel
    text = one.to_json()
    again = base.from_json(text)
    assert again == one
    assert again.to_json() == text
    assert json.loads(text)["fastpriv"] == family
    assert pickle.loads(pickle.dumps(one)) == one
    if one.space.size <= 64:
        numbers = (lambda v: v.pmf()) if family == "prior" else (lambda v: v.matrix())
        np.testing.assert_array_equal(numbers(again), numbers(one))


def test_what_differs_is_not_equal():
    made = [make() for make in {**PRIORS, **CHANNELS}.values()]
    for i, one in enumerate(made):
        for other in made[i + 1 :]:
            assert one != other
    assert fp.HammingChannel(3, 2, 1.0) != fp.HammingChannel(3, 2, np.nextafter(1.0, 2.0))
    pmf = stochastic(1, 4)[0]
    moved = pmf.copy()
    moved[0], moved[1] = (
        np.nextafter(moved[0], 1.0),
        moved[1] - (np.nextafter(moved[0], 1.0) - moved[0]),
    )
    assert fp.Dense(pmf, [2, 2]) != fp.Dense(moved, [2, 2])
    assert fp.Dense(pmf, [2, 2]) != fp.Dense(pmf, [4])
    assert fp.Uniform(2, 2) == fp.Product.iid([0.5, 0.5], 2)
    assert fp.Uniform(2, 2) != "uniform"


def test_a_subclass_is_not_what_it_changes():
    class Louder(fp.HammingChannel):
        pass

    louder = Louder(2, 2, 1.0)
    assert louder != fp.HammingChannel(2, 2, 1.0)
    assert louder != Louder(2, 2, 1.0)
    assert louder == louder
    with pytest.raises(fp.InvalidInput, match="does not say what defines it"):
        louder.to_json()


def test_files_are_read(tmp_path):
    path = tmp_path / "prior.json"
    path.write_text(PRIORS["markov"]().to_json())
    assert fp.Markov.from_json(path) == PRIORS["markov"]()
    with pytest.raises(fp.InvalidInput, match="describe a Product; got a Markov"):
        fp.Product.from_json(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "valid JSON"),
        ("{}", "as to_json"),
        ('{"fastpriv": "prior", "kind": "Product"}', "version"),
        ('{"fastpriv": "prior", "version": 1, "kind": "Produkt"}', "did you mean Product"),
        ('{"fastpriv": "prior", "version": 1, "kind": "Product"}', "does not describe a Product"),
        (
            '{"fastpriv": "prior", "version": 1, "kind": "Dense", "pmf": [0.5, 0.6], "sizes": [2]}',
            "sum to 1",
        ),
        (
            '{"fastpriv": "prior", "version": 1, "kind": "Product", "marginals": [[0.5, 0.5]], '
            '"rows": [[0, 99999999999]]}',
            "2\\^28 records",
        ),
        (
            '{"fastpriv": "prior", "version": 1, "kind": "Product", "marginals": [[0.5, 0.5]], '
            '"rows": [[1, 2]]}',
            "runs",
        ),
        ("no such file", "cannot be read"),
    ],
)
def test_what_is_no_definition_is_refused_in_words(text, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.Distribution.from_json(text)


def test_type_channels_are_checked():
    made = CHANNELS["types"]().to_dict()
    made["entries"][0][0] += 0.1
    with pytest.raises(fp.InvalidInput, match="sums to"):
        fp.AbstractChannel.from_dict(made)


def test_a_form_is_read_as_what_it_is_written_as():
    prior = fp.Uniform(3, 2)
    assert fp.Uniform.from_json(prior.to_json()) == prior
    with pytest.raises(fp.InvalidInput, match="describe a Uniform; got a Markov"):
        fp.Uniform.from_json(fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3).to_json())
