"""The accountant for Opacus: with Opacus where it is installed, and with its interface alone."""

import abc
import copy
import sys
import types

import pytest

from fastpriv.accounting import PrivacyProfile, random_allocation
from fastpriv.adapters.opacus import (
    AllocationSampler,
    Sampling,
    SamplingWarning,
    make_accountant,
    profile_of,
    sampling_of,
)
from fastpriv.errors import InvalidInput


class IAccountant(abc.ABC):
    """The part of Opacus's interface that an accountant inherits, as of its version 1.6."""

    def __init__(self):
        self.history = []

    @abc.abstractmethod
    def step(self, *, noise_multiplier, sample_rate):
        """Count a step."""

    @abc.abstractmethod
    def get_epsilon(self, delta, *args, **kwargs):
        """Return epsilon."""

    @abc.abstractmethod
    def __len__(self):
        """Return a number that is 0 before the first step."""

    @classmethod
    @abc.abstractmethod
    def mechanism(cls):
        """Return the name."""

    def get_optimizer_hook_fn(self, sample_rate):
        def hook(optim):
            self.step(noise_multiplier=optim.noise_multiplier, sample_rate=sample_rate)

        return hook

    def state_dict(self):
        return {"history": copy.deepcopy(self.history), "mechanism": self.mechanism()}

    def load_state_dict(self, state):
        if state["mechanism"] != self.mechanism():
            raise ValueError("another mechanism")
        self.history = state["history"]


@pytest.fixture(params=["opacus", "interface"])
def kind(request, monkeypatch):
    """The class of accountants, on Opacus itself or on its interface."""
    if request.param == "opacus":
        pytest.importorskip("opacus", reason="needs the extra 'opacus'")
    else:
        module = types.ModuleType("opacus.accountants")
        module.IAccountant = IAccountant
        monkeypatch.setitem(sys.modules, "opacus", types.ModuleType("opacus"))
        monkeypatch.setitem(sys.modules, "opacus.accountants", module)
    return make_accountant()


def test_steps_and_questions(kind):
    accountant = kind()
    assert len(accountant) == 0
    assert accountant.get_epsilon(1e-6) == 0.0
    for _ in range(1000):
        accountant.step(noise_multiplier=0.8, sample_rate=0.005)
    assert accountant.history == [(0.8, 0.005, 1000)]
    assert accountant.get_epsilon(1e-6) == pytest.approx(2.004106293, rel=1e-9)
    assert accountant.get_epsilon(delta=1e-6, alphas=[2.0]) == accountant.get_epsilon(1e-6)
    assert accountant.get_delta(2.0041062935) == pytest.approx(1e-6, rel=1e-6)
    assert kind.mechanism() == "fastpriv" == accountant.state_dict()["mechanism"]


def test_noise_and_rates_may_change(kind):
    accountant = kind()
    for noise, rate in [(1.0, 0.01), (1.0, 0.01), (2.0, 0.01), (2.0, 0.02), (1.0, 0.01)]:
        accountant.step(noise_multiplier=noise, sample_rate=rate)
    assert accountant.history == [(1.0, 0.01, 2), (2.0, 0.01, 1), (2.0, 0.02, 1), (1.0, 0.01, 1)]
    parts = [PrivacyProfile.gaussian(1.0, 0.01).self_compose(3)]
    parts += [PrivacyProfile.gaussian(2.0, rate) for rate in (0.01, 0.02)]
    expected = parts[0].compose(*parts[1:]).delta(0.2).upper
    assert accountant.get_delta(0.2) == pytest.approx(expected, rel=1e-9)


def test_state_is_kept(kind):
    accountant, other = kind(), kind()
    accountant.step(noise_multiplier=1.0, sample_rate=1.0)
    state = accountant.state_dict()
    accountant.step(noise_multiplier=1.0, sample_rate=1.0)
    other.load_state_dict(state)
    assert other.history == [(1.0, 1.0, 1)]
    assert other.get_epsilon(1e-5) == pytest.approx(4.377178095681225, rel=1e-9)
    with pytest.raises(ValueError, match="mechanism"):
        other.load_state_dict({"history": [], "mechanism": "rdp"})


@pytest.mark.parametrize(
    ("noise", "rate"), [(-1.0, 0.1), (1.0, 1.5), (float("nan"), 0.1), (1.0, "0.1"), (1.0, -0.1)]
)
def test_steps_that_mean_nothing(kind, noise, rate):
    accountant = kind()
    with pytest.raises(InvalidInput):
        accountant.step(noise_multiplier=noise, sample_rate=rate)
    assert len(accountant) == 0


def test_edges(kind):
    accountant = kind()
    accountant.step(noise_multiplier=0.0, sample_rate=0.0)
    assert accountant.get_epsilon(0.0) == 0.0
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(1e-3) == float("inf")
    assert accountant.get_delta(5.0) == pytest.approx(0.1)
    assert profile_of([(1.0, 0.5, 0)]).epsilon(0.0).upper == 0.0


@pytest.mark.filterwarnings("ignore::UserWarning")  # Opacus recommends its secure mode
def test_in_opacus():
    """Registered, made by its name, and between its own accountants."""
    opacus = pytest.importorskip("opacus", reason="needs the extra 'opacus'")
    from opacus.accountants import create_accountant, register_accountant
    from opacus.accountants.utils import get_noise_multiplier

    register_accountant("fastpriv", make_accountant(), force=True)
    ours = opacus.PrivacyEngine(accountant="fastpriv").accountant
    own = {name: create_accountant(name) for name in ("rdp", "prv")}
    for accountant in (ours, *own.values()):
        accountant.history = [(1.0, 0.01, 1000)]
    assert ours.get_epsilon(1e-5) == pytest.approx(1.828236667, rel=1e-9)
    assert ours.get_epsilon(1e-5) < own["rdp"].get_epsilon(1e-5)
    assert abs(ours.get_epsilon(1e-5) - own["prv"].get_epsilon(1e-5)) < 0.02
    sigma = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, steps=1000, accountant="fastpriv"
    )
    assert PrivacyProfile.gaussian(sigma, 0.01).self_compose(1000).epsilon(1e-5).upper <= 2.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_in_opacus():
    """Two steps of a tiny model: the optimizer tells the accountant what it did."""
    pytest.importorskip("opacus", reason="needs the extra 'opacus'")
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants import register_accountant

    register_accountant("fastpriv", make_accountant(), force=True)
    engine = PrivacyEngine(accountant="fastpriv")
    model = torch.nn.Linear(2, 1)
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4
    )
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=data,
        noise_multiplier=1.5,
        max_grad_norm=1.0,
    )
    for x, y in loader:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    assert engine.accountant.history == [(1.5, 0.5, 2)]
    expected = PrivacyProfile.gaussian(1.5, 0.5).self_compose(2).epsilon(1e-5).upper
    assert engine.get_epsilon(1e-5) == expected


def test_without_opacus(monkeypatch):
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.setitem(sys.modules, "opacus.accountants", None)
    with pytest.raises(ImportError, match=r"fastpriv\[opacus\]"):
        make_accountant()


# Loaders: their batches are accounted as what they are, or refused.


def loader(sampler, batch_size=10, records=100, wrap="BatchSampler"):
    """A stand-in for a DataLoader whose samplers have the names of PyTorch's."""
    name, fields = sampler
    size = fields.pop("length", records)
    inner = type(name, (), {**fields, "__len__": lambda self: size})()
    batches = -(-size // batch_size)
    fields = {"sampler": inner, "batch_size": batch_size, "__len__": lambda self: batches}
    outer = type(wrap, (), fields)()
    return types.SimpleNamespace(batch_sampler=outer, dataset=range(records))


SHUFFLED = "RandomSampler", {"replacement": False}


@pytest.mark.parametrize(
    ("sampler", "found"),
    [
        (("SequentialSampler", {}), Sampling("one-pass", 10, 10, 100)),
        (("RandomSampler", {"replacement": False}), Sampling("one-pass", 10, 10, 100)),
        (
            ("SubsetRandomSampler", {"length": 50, "indices": range(50)}),
            Sampling("one-pass", 5, 10, 100),
        ),
        (
            ("DistributedSampler", {"length": 50, "num_replicas": 2, "drop_last": False}),
            Sampling("one-pass", 5, 10, 100),
        ),
        (("RandomSampler", {"replacement": True}), Sampling("with-replacement", 10, 10, 100)),
        (
            ("RandomSampler", {"replacement": False, "length": 10}),
            Sampling("subset", 1, 10, 100),
        ),
    ],
)
def test_loaders_are_recognised(sampler, found):
    assert sampling_of(loader(sampler)) == found


def test_loaders_that_are_refused():
    with pytest.raises(InvalidInput, match="got WeightedRandomSampler"):
        sampling_of(loader(("WeightedRandomSampler", {})))
    with pytest.raises(InvalidInput, match="got Buckets"):
        sampling_of(loader(SHUFFLED, wrap="Buckets"))
    with pytest.raises(InvalidInput, match="batch_size"):
        sampling_of(types.SimpleNamespace(batch_sampler=None))


@pytest.mark.parametrize(
    "sampler",
    [
        ("RandomSampler", {"replacement": False, "length": 150}),
        ("SubsetRandomSampler", {"length": 3, "indices": [0, 1, 1]}),
        ("DistributedSampler", {"length": 34, "num_replicas": 3, "drop_last": False}),
    ],
)
def test_a_record_that_is_twice_in_a_pass_is_refused(sampler):
    """One Gaussian step per pass would be less than what such a record spends."""
    with pytest.raises(InvalidInput, match="at most once in a pass"):
        sampling_of(loader(sampler))


def test_a_pass_over_shuffled_batches_is_one_gaussian_step(kind):
    """Not the Poisson sample that the same history would be."""
    accountant = kind()
    accountant.read_loader(loader(("RandomSampler", {"replacement": False})))
    for _ in range(30):
        accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    three = PrivacyProfile.gaussian(1.0).self_compose(3)
    assert accountant.get_epsilon(1e-5) == three.epsilon(1e-5).upper
    assert accountant.get_epsilon(1e-5) > 2 * profile_of(accountant.history).epsilon(1e-5).upper
    assert accountant.profile().relation == "replace-special"
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)  # a fourth pass has begun
    assert accountant.get_epsilon(1e-5) == (
        PrivacyProfile.gaussian(1.0).self_compose(4).epsilon(1e-5).upper
    )


def test_the_smallest_noise_of_a_pass_counts():
    history = [(2.0, 0.1, 5), (1.0, 0.1, 5), (2.0, 0.1, 25), (3.0, 0.1, 1)]
    found = profile_of(history, Sampling("one-pass", 10, 10, 100))
    of = PrivacyProfile.gaussian
    expected = of(1.0).compose(of(2.0).self_compose(3))  # the last pass has noise 2 and 3
    assert found.epsilon(1e-5) == expected.epsilon(1e-5)


def test_other_batches(kind):
    history = [(2.0, 0.1, 20)]
    found = profile_of(history, Sampling("allocation", 10, 0, 100))
    assert found == random_allocation(2.0, 10, 2)
    noise = PrivacyProfile.gaussian(2.0, relation="replace-one")
    found = profile_of(history, Sampling("with-replacement", 10, 10, 100))
    step = noise.sampled_with_replacement(10, 100, relation="add-or-remove")
    assert found == step.self_compose(20)
    found = profile_of([(2.0, 1.0, 20)], Sampling("subset", 1, 10, 100))
    step = noise.sampled_without_replacement(10, 100, relation="add-or-remove")
    assert found == step.self_compose(20)
    with pytest.raises(InvalidInput, match="accumulated"):
        profile_of([(2.0, 0.2, 20)], Sampling("one-pass", 10, 10, 100))


def test_the_loader_is_kept_and_must_not_change(kind):
    accountant, other = kind(), kind()
    accountant.read_loader(loader(("SequentialSampler", {})))
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    other.load_state_dict(accountant.state_dict())
    assert other.sampling == accountant.sampling
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    with pytest.raises(InvalidInput, match="as before"):
        accountant.read_loader(loader(("RandomSampler", {"replacement": True})))


def test_an_engine_without_a_known_loader_warns(kind):
    accountant = kind()
    optimizer = types.SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=1)
    accountant.get_optimizer_hook_fn(0.1)(optimizer)
    with pytest.warns(SamplingWarning, match="read_loader"):
        accountant.get_epsilon(1e-5)


def test_every_record_is_in_one_random_batch():
    sampler = AllocationSampler(2000, 4)
    epochs = [list(sampler), list(sampler)]
    for epoch in epochs:
        assert sorted(i for batch in epoch for i in batch) == list(range(2000))
        assert all(300 < len(batch) < 700 for batch in epoch)
    assert epochs[0] != epochs[1]
    found = sampling_of(types.SimpleNamespace(batch_sampler=sampler, dataset=range(2000)))
    assert found == Sampling("allocation", 4, 0, 2000)
    with pytest.raises(InvalidInput, match="batches"):
        AllocationSampler(10, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("poisson", [True, False])
def test_loaders_of_opacus(poisson):
    pytest.importorskip("opacus", reason="needs the extra 'opacus'")
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants import register_accountant

    register_accountant("fastpriv", make_accountant(), force=True)
    engine = PrivacyEngine(accountant="fastpriv")
    model = torch.nn.Linear(2, 1)
    records = torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    model, optimizer, data = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(records, batch_size=4, shuffle=True),
        noise_multiplier=1.5,
        max_grad_norm=1.0,
        poisson_sampling=poisson,
    )
    assert engine.accountant.read_loader(data).kind == ("poisson" if poisson else "one-pass")
    for x, y in data:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    of = PrivacyProfile.gaussian
    expected = of(1.5, 0.5).self_compose(2) if poisson else of(1.5)
    assert engine.get_epsilon(1e-5) == expected.epsilon(1e-5).upper
