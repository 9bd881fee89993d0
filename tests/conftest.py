"""Hypothesis profiles, chosen by the environment, and tables that are made when a test asks."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Which examples are tried never depends on how fast the machine is.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without solving: what runs at collection would run again in every worker."""

    def refuse(solver):
        raise RuntimeError("a linear program was solved at collection: solve it in the test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("highspy.Highs.run", refuse)
        return (yield)


@pytest.fixture
def matrix(request):
    """The table of a channel, from the function that ``cases`` gives for it (see ``once``)."""
    return request.param()


@pytest.fixture
def channel(request):
    """A channel, or what the function that makes it returns: no solver runs at collection."""
    return request.param() if callable(request.param) else request.param
