"""An accountant for Opacus; needs ``pip install 'fastpriv[opacus]'``."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastpriv._core import validation as check
from fastpriv._core.extras import optional
from fastpriv.accounting.allocation import random_allocation
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import InvalidInput, described

__all__ = ["AllocationSampler", "Sampling", "SamplingWarning", "make_accountant", "sampling_of"]


class SamplingWarning(UserWarning):
    """The loader of a training was not shown, so Poisson sampling was assumed."""


class AllocationSampler:
    """Batch sampler that puts every record into one random batch of each epoch (balls-in-bins).

    Use it as ``DataLoader(dataset, batch_sampler=AllocationSampler(n, t))`` and pass
    ``poisson_sampling=False`` to Opacus. It is accounted by ``random_allocation``. Batches have
    different sizes, and some may be empty.

    Parameters
    ----------
    dataset_size, batches : int
        Numbers of records and of batches.

    Examples
    --------
    >>> from fastpriv.adapters.opacus import AllocationSampler
    >>> epoch = list(AllocationSampler(1000, 10))
    >>> len(epoch), sorted(i for batch in epoch for i in batch) == list(range(1000))
    (10, True)
    """

    def __init__(self, dataset_size: int, batches: int) -> None:
        self.dataset_size = check.integer(dataset_size, "dataset_size", 1)
        self.batches = check.integer(batches, "batches", 1)

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        result: list[list[int]] = [[] for _ in range(self.batches)]
        for record in range(self.dataset_size):
            result[secrets.randbelow(self.batches)].append(record)
        return iter(result)


class Sampling(NamedTuple):
    """How a loader forms batches.

    ``kind`` is "poisson", "allocation", "one-pass" (every record at most once per pass over the
    loader), "subset" (each batch is a new random subset) or "with-replacement".
    """

    kind: str
    batches: int
    batch_size: int
    dataset_size: int

    @property
    def relation(self) -> str:
        """Neighbours of the profile: batches of fixed size have a blank in place of a record."""
        return "replace-special" if self.kind == "one-pass" else "add-or-remove"


def sampling_of(loader: Any) -> Sampling:
    """Return how a DataLoader of PyTorch forms its batches, or refuse it with the reason.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        The loader that is iterated over, such as the one that ``make_private`` returns.

    Returns
    -------
    Sampling
        Poisson samplers of Opacus; :class:`AllocationSampler`; sequential, shuffled and subset
        samplers as "one-pass"; random samplers with replacement; single batches of a random
        sampler as "subset".
    """
    batch_sampler = getattr(loader, "batch_sampler", None)
    if batch_sampler is None:
        raise InvalidInput(
            "loader must be a DataLoader with batches; got one without a batch_sampler. Give it a "
            "batch_size."
        )
    name = type(batch_sampler).__name__
    if name in ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler"):
        return Sampling("poisson", len(batch_sampler), 0, 0)
    records = len(loader.dataset)
    if isinstance(batch_sampler, AllocationSampler):
        return Sampling("allocation", batch_sampler.batches, 0, records)
    sampler: Any = getattr(batch_sampler, "sampler", None)
    size = int(getattr(batch_sampler, "batch_size", 0))
    kind = type(sampler).__name__
    if name != "BatchSampler" or kind not in _SAMPLERS:
        what = name if name != "BatchSampler" else kind
        raise InvalidInput(
            f"loader must have a sampler whose batches have a proved bound; got {what}. Use "
            "poisson_sampling=True, AllocationSampler, or shuffle=True."
        )
    batches = len(batch_sampler)
    if kind == "RandomSampler" and sampler.replacement:
        return Sampling("with-replacement", batches, size, records)
    if kind == "RandomSampler" and len(sampler) <= size and len(sampler) < records:
        return Sampling("subset", batches, len(sampler), records)
    if _repeats(sampler, kind, records):
        raise InvalidInput(
            f"loader must have a record at most once in a pass; got a {kind} that repeats records. "
            "Remove repeated indices, or drop the records of an incomplete last batch."
        )
    return Sampling("one-pass", batches, size, records)


def _repeats(sampler: Any, kind: str, records: int) -> bool:
    """Whether a sampler without replacement has a record more than once in a pass."""
    if kind == "SubsetRandomSampler":
        return len(set(map(int, sampler.indices))) < len(sampler)
    if kind == "DistributedSampler":  # it repeats records until all machines have as many
        return not sampler.drop_last and records % sampler.num_replicas > 0
    return len(sampler) > records


#: Samplers of PyTorch whose batches are known.
_SAMPLERS = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "DistributedSampler")


def make_accountant(name: str = "fastpriv") -> type[Any]:
    """Return an accountant class for Opacus, whose epsilon is certified from above.

    A step is Gaussian noise on a batch. Show the loader by ``accountant.read_loader(loader)``: its
    batches are accounted as what they are.

    - Poisson samples (``poisson_sampling=True``): as in Opacus's own accountants. Neighbours differ
      by one added or removed record.
    - Every record in one random batch (:class:`AllocationSampler`): random allocation.
    - Shuffled or fixed batches (``poisson_sampling=False``): every record is in at most one step of
      a pass, which costs as much as Gaussian noise without sampling, once per pass. No smaller
      bound is proved for shuffled batches of fixed size. A record is replaced by a blank
      (relation "replace-special"). Every pass must be run to its end: steps are counted, and a pass
      has as many steps as the loader has batches.
    - Samples with replacement, and new subsets of fixed size: per step.

    Other loaders are refused with the reason. If an engine of Opacus makes steps and no loader was
    shown, Poisson samples are assumed, with a :class:`SamplingWarning`. Steps that are counted by
    ``accountant.step(noise_multiplier=..., sample_rate=...)`` are Poisson samples at that rate.
    Steps of different noise and rates are composed exactly.

    Parameters
    ----------
    name : str
        The name to register it by, which ``mechanism()`` returns.

    Returns
    -------
    subclass of opacus.accountants.IAccountant
        With ``step``, ``get_epsilon(delta)``, ``get_delta(epsilon)``, ``read_loader(loader)``,
        ``sampling``, ``profile()``, ``history``, ``state_dict``. A step takes no time. A question
        takes one composition, kept until the next step.

    Examples
    --------
    Register it once, then use it by its name::

        from opacus import PrivacyEngine
        from opacus.accountants import register_accountant
        from fastpriv.adapters.opacus import make_accountant

        register_accountant("fastpriv", make_accountant())
        engine = PrivacyEngine(accountant="fastpriv")
        model, optimizer, loader = engine.make_private(...)
        engine.accountant.read_loader(loader)
    """
    base = optional("opacus.accountants", "opacus").IAccountant

    class ProfileAccountant(base):  # type: ignore[misc, valid-type]
        """Accountant of Opacus that composes certified privacy profiles."""

        def __init__(self) -> None:
            super().__init__()
            self.history: list[tuple[float, float, int]] = []
            self.sampling: Sampling | None = None
            self._assumed = False

        def read_loader(self, loader: Any) -> Sampling:
            """Account steps as batches of this loader, or refuse it with the reason."""
            found = sampling_of(loader)
            if self.sampling not in (None, found) and self.history:
                raise InvalidInput(
                    f"loader must form batches as before, {self.sampling}; got {found}. Use "
                    "another accountant, and compose their profiles."
                )
            self.sampling = found
            return found

        def get_optimizer_hook_fn(self, sample_rate: float) -> Any:
            """Return what the optimizer of an engine calls after each step."""
            self._assumed = True
            return super().get_optimizer_hook_fn(sample_rate)

        def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
            """Count one step. Invalid input is refused now, not at the end of the training."""
            noise = check.real(noise_multiplier, "noise_multiplier", least=0.0)
            rate = check.real(sample_rate, "sample_rate", least=0.0, most=1.0)
            if self.history and tuple(self.history[-1][:2]) == (noise, rate):
                self.history[-1] = (noise, rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise, rate, 1))

        def profile(self) -> PrivacyProfile:
            """Return the profile of all steps."""
            if self.sampling is None and self._assumed:
                warnings.warn(
                    "the loader is not known, so Poisson samples are assumed; call "
                    "accountant.read_loader(loader)",
                    SamplingWarning,
                    stacklevel=3,
                )
                self._assumed = False
            return profile_of(self.history, self.sampling)

        def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
            """Return the smallest epsilon at a delta, rounded up; ignore further arguments."""
            return self.profile().epsilon(delta).upper

        def get_delta(self, epsilon: float) -> float:
            """Return the smallest delta at an epsilon, rounded up."""
            return self.profile().delta(epsilon).upper

        def state_dict(self, *args: Any, **kwargs: Any) -> Any:
            """Return the steps and how the loader forms batches."""
            state = super().state_dict(*args, **kwargs)
            if self.sampling is not None:
                state["sampling"] = list(self.sampling)
            return state

        def load_state_dict(self, state_dict: Any) -> None:
            """Continue from what ``state_dict`` returned."""
            super().load_state_dict(state_dict)
            known = state_dict.get("sampling")
            self.sampling = None if known is None else Sampling(*known)

        def __len__(self) -> int:
            return len(self.history)

        @classmethod
        def mechanism(cls) -> str:
            return name

    return ProfileAccountant


def profile_of(
    history: Sequence[Sequence[Any]], sampling: Sampling | None = None
) -> PrivacyProfile:
    """Return the profile of (noise multiplier, sample rate, steps) triples, as Opacus keeps them.

    Parameters
    ----------
    history : sequence of (float, float, int)
        Noise multiplier, sample rate and number of steps.
    sampling : Sampling, optional
        How batches are formed; by default Poisson samples at the sample rate.

    Examples
    --------
    >>> from fastpriv.adapters.opacus import profile_of
    >>> round(profile_of([(0.8, 0.005, 1000)]).epsilon(1e-6).upper, 9)
    2.004106293
    """
    if sampling is None or sampling.kind == "poisson":
        parts = [
            PrivacyProfile.gaussian(noise, rate, relation="add-or-remove").self_compose(steps)
            for noise, rate, steps in history
        ]
        return PrivacyProfile({}, "add-or-remove").compose(*parts)
    if not isinstance(sampling, Sampling):
        raise InvalidInput(f"sampling must be a Sampling; got {described(sampling)}.")
    if any(abs(rate * sampling.batches - 1.0) > 1e-6 for _, rate, steps in history if steps):
        raise InvalidInput(
            "steps must take one batch of the loader each; gradients that are accumulated over "
            "several batches are accounted for Poisson samples only."
        )
    made = [_steps(noise, steps, sampling) for noise, _, steps in _passes(history, sampling)]
    return PrivacyProfile({}, sampling.relation).compose(*made)


def _passes(history: Sequence[Sequence[Any]], sampling: Sampling) -> list[tuple[float, float, int]]:
    """Return noise and steps of whole passes, the smallest noise of each, or of single steps."""
    if sampling.kind not in ("one-pass", "allocation"):
        return [(noise, rate, steps) for noise, rate, steps in history]
    result: list[tuple[float, float, int]] = []
    left, least = sampling.batches, float("inf")
    for noise, rate, steps in history:
        rest = int(steps)
        while rest:
            whole = rest // sampling.batches if left == sampling.batches else 0
            if whole:
                result.append((noise, rate, whole))
                rest -= whole * sampling.batches
                continue
            taken = min(rest, left)
            least, rest, left = min(least, noise), rest - taken, left - taken
            if not left:
                result.append((least, rate, 1))
                left, least = sampling.batches, float("inf")
    if left < sampling.batches:
        result.append((least, 0.0, 1))
    return result


def _steps(noise: float, steps: int, sampling: Sampling) -> PrivacyProfile:
    """Return the profile of passes, or of single steps, with one amount of noise."""
    if sampling.kind == "one-pass":
        return PrivacyProfile.gaussian(noise, relation=sampling.relation).self_compose(steps)
    if sampling.kind == "allocation":
        return random_allocation(noise, sampling.batches, steps)
    one = PrivacyProfile.gaussian(noise, relation="replace-one")
    sizes = sampling.batch_size, sampling.dataset_size
    sampled = (
        one.sampled_without_replacement(*sizes, relation=sampling.relation)
        if sampling.kind == "subset"
        else one.sampled_with_replacement(*sizes, relation=sampling.relation)
    )
    return sampled.self_compose(steps)
