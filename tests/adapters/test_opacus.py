"""The accountant for Opacus: with Opacus where it is installed, and with its interface alone."""

import abc
import copy
import sys
import types

import pytest

from fastpriv.accounting import PrivacyProfile
from fastpriv.adapters.opacus import make_accountant, profile_of
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
