"""Who is timed: ours, peers and yardsticks, and the limits that peers run under."""

import importlib
import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

#: Distributions of the extra ``peers``, and what is imported of each.
PEERS = {
    "autodp": "autodp",
    "cvxpy": "cvxpy",
    "dit": "dit",
    "dp-accounting": "dp_accounting",
    "multi-freq-ldpy": "multi_freq_ldpy",
    "opendp": "opendp.prelude",
    "prv-accountant": "prv_accountant",
    "qif": "qif",
}
OURS = "fastpriv"
#: Seconds after which a call of a peer is stopped.
LIMIT = 60.0
#: Seconds of a first call after which there is no second one.
PATIENCE = 5.0
#: Bytes of address space that a peer may add to what is in use.
MEMORY = 2 << 30


@dataclass
class Contender:
    """A way to answer: the call, and a judge that turns its result into fields of extra_info.

    One call answers for ``items`` units. A contender that has to be set up first, such as
    compiled, makes its call: ``made`` says so. ``needs`` is a name in PEERS, ``skip`` a reason not
    to ask at all.
    """

    name: str
    call: Callable[[], Any]
    judge: Callable[[Any], dict[str, Any]] = lambda result: {}
    items: int = 1
    kind: str = "peer"
    needs: str | None = None
    skip: str | None = None
    made: bool = False

    def limits(self):
        """What its calls run under: a peer is guarded, our own code runs as users run it."""
        return guarded(LIMIT) if self.kind == "peer" else nullcontext()

    def refusal(self):
        """Why it cannot be asked, or None."""
        if self.needs is not None:
            try:
                with self.limits():
                    importlib.import_module(PEERS.get(self.needs, self.needs))
            except ImportError:
                return "not installed"
        return None if self.skip is None else f"not run: {self.skip}"


def ours(call, judge=lambda result: {}, items=1, name=OURS):
    """Contender of this library."""
    return Contender(name, call, judge, items, "ours")


def peer(name, call, judge=lambda result: {}, items=1, needs=None, skip=None, made=False):
    """Contender of another one."""
    return Contender(name, call, judge, items, "peer", needs, skip, made)


def yardstick(name, call, items=1, judge=lambda result: {}):
    """What does not answer the question but puts our time in proportion, such as a copy."""
    return Contender(name, call, judge, items, "yardstick")


def sizes(*small, large=()):
    """Parameters for ``pytest.mark.parametrize``; ``-m "not large"`` leaves out the large ones.

    A tuple holds one value for each of several names.
    """
    marked = (each if isinstance(each, tuple) else (each,) for each in large)
    return [*small, *(pytest.param(*each, marks=pytest.mark.large) for each in marked)]


@contextmanager
def guarded(seconds):
    """Let a peer warn, and let it fail alone where it takes too long or asks for too much memory.

    A call into compiled code is stopped only when it returns. Needs a POSIX system.
    """
    import resource

    def stop(*_):
        raise TimeoutError(f"no answer in {seconds:g} s")

    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGALRM, stop)
    limit = in_use() + MEMORY
    if before[0] != resource.RLIM_INFINITY:
        limit = min(limit, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def in_use():
    """Bytes of address space of this process."""
    import resource

    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


def words(error):
    """An error in one short line."""
    return f"{type(error).__name__}: {error}".split("\n")[0].rstrip(": ")[:80]
