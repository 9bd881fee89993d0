"""Execution plans of JAX-Privacy take our accountant, and their events have a profile."""

import pytest

execution_plan = pytest.importorskip("jax_privacy.experimental.execution_plan")

from dp_accounting import NeighboringRelation  # noqa: E402

from fastpriv.adapters.dp_accounting import ProfileAccountant  # noqa: E402


@pytest.mark.parametrize(
    "more", [{}, {"strategy": [1.0, 0.5]}, {"truncated_batch_size": 20, "num_examples": 1000}]
)
def test_a_plan_is_calibrated_and_accounted(more):
    relation = NeighboringRelation.REPLACE_SPECIAL
    config = execution_plan.BandMFExecutionPlanConfig(
        **{"strategy": [1.0], **more},
        iterations=100,
        sampling_prob=0.1,
        epsilon=1.0,
        delta=1e-5,
        accountant=ProfileAccountant(relation),
    )
    epsilon = ProfileAccountant(relation).compose(config.plan.dp_event).get_epsilon(1e-5)
    assert 0.999 < epsilon <= 1.0
