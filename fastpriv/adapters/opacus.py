"""An accountant for Opacus; needs ``pip install 'fastpriv[opacus]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv.accounting.profile.profile import PrivacyProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["make_accountant"]


def make_accountant(name: str = "fastpriv") -> type[Any]:
    """Return an accountant class for Opacus, whose epsilon is certified from above.

    A step is Gaussian noise on a Poisson sample. Neighbours differ by one added or removed record,
    as in Opacus's own accountants. Steps of different noise and rates are composed exactly.

    Parameters
    ----------
    name : str
        The name to register it by, which ``mechanism()`` returns.

    Returns
    -------
    subclass of opacus.accountants.IAccountant
        With ``step``, ``get_epsilon(delta)``, ``get_delta(epsilon)``, ``history``, ``state_dict``.
        A step takes no time. A question takes one composition, kept until the next step.

    Examples
    --------
    Register it once, then use it by its name::

        from opacus import PrivacyEngine
        from opacus.accountants import register_accountant
        from fastpriv.adapters.opacus import make_accountant

        register_accountant("fastpriv", make_accountant())
        engine = PrivacyEngine(accountant="fastpriv")
    """
    base = optional("opacus.accountants", "opacus").IAccountant

    class ProfileAccountant(base):  # type: ignore[misc, valid-type]
        """Accountant of Opacus that composes certified privacy profiles."""

        def __init__(self) -> None:
            super().__init__()
            self.history: list[tuple[float, float, int]] = []

        def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
            """Count one step. Invalid input is refused now, not at the end of the training."""
            noise = check.real(noise_multiplier, "noise_multiplier", least=0.0)
            rate = check.real(sample_rate, "sample_rate", least=0.0, most=1.0)
            if self.history and tuple(self.history[-1][:2]) == (noise, rate):
                self.history[-1] = (noise, rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise, rate, 1))

        def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
            """Return the smallest epsilon at a delta, rounded up; ignore further arguments."""
            return profile_of(self.history).epsilon(delta).upper

        def get_delta(self, epsilon: float) -> float:
            """Return the smallest delta at an epsilon, rounded up."""
            return profile_of(self.history).delta(epsilon).upper

        def __len__(self) -> int:
            return len(self.history)

        @classmethod
        def mechanism(cls) -> str:
            return name

    return ProfileAccountant


def profile_of(history: Sequence[Sequence[Any]]) -> PrivacyProfile:
    """Return the profile of (noise multiplier, sample rate, steps) triples, as Opacus keeps them.

    Examples
    --------
    >>> from fastpriv.adapters.opacus import profile_of
    >>> round(profile_of([(0.8, 0.005, 1000)]).epsilon(1e-6).upper, 9)
    2.004106293
    """
    parts = [
        PrivacyProfile.gaussian(noise, rate, relation="add-or-remove").self_compose(steps)
        for noise, rate, steps in history
    ]
    return PrivacyProfile({}, "add-or-remove").compose(*parts)
