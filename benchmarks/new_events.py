"""New events beside dp-accounting and riskcal, in one run: value, width and CPU time.

python -m benchmarks.new_events
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import fastpriv as fp

of = fp.accounting.PrivacyProfile


def timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer and its CPU time in seconds."""
    start = time.process_time()
    answer = ask()
    return answer, time.process_time() - start


def peers() -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Return the name of each question, our answer and a peer's."""
    import dp_accounting as dpa
    from dp_accounting.pld import PLDAccountant
    from riskcal import analysis, calibration

    def pld(event: Any, count: int, delta: float) -> Callable[[], Any]:
        return lambda: PLDAccountant().compose(event, count).get_epsilon(delta)

    poisson = dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(1.0))
    mixture = dpa.dp_event.MixtureOfGaussiansDpEvent(
        1.0, [0, 1, 2, 3], [0.99**3, 3 * 0.01 * 0.99**2, 3 * 0.01**2 * 0.99, 0.01**3]
    )
    allocate = fp.accounting.random_allocation
    return [
        (
            "10 of 100 batches, noise 1, delta 1e-6; peer: Poisson at rate 0.1",
            lambda: allocate(1.0, 100, selected=10).epsilon(1e-6),
            pld(poisson, 100, 1e-6),
        ),
        (
            "group of 3 in DP-SGD, q .01, 100 steps, delta 1e-5; peer: mixture of Gaussians",
            lambda: of.gaussian(1.0, 0.01).self_compose(100).group(3).epsilon(1e-5),
            pld(mixture, 100, 1e-5),
        ),
        (
            "permute-and-flip at 0.5, 20 times, delta 1e-4; peer: Laplace noise",
            lambda: of.permute_and_flip(0.5).self_compose(20).epsilon(1e-4),
            pld(dpa.LaplaceDpEvent(2.0), 20, 1e-4),
        ),
        (
            "advantage of Gaussian noise 2; peer: riskcal",
            lambda: of.gaussian(2.0).delta(0.0),
            lambda: analysis.get_advantage_from_gdp(0.5),
        ),
        (
            "noise for advantage 0.1, DP-SGD, q .01, 100 steps; peer: riskcal",
            lambda: fp.accounting.calibrate(
                lambda noise: of.gaussian(noise, 0.01).self_compose(100), advantage=0.1
            ),
            lambda: calibration.find_noise_multiplier_for_advantage_dpsgd(
                advantage=0.1, sample_rate=0.01, num_steps=100
            ),
        ),
        (
            "noise for TPR 0.05 at FPR 0.01, DP-SGD, q .01, 100 steps; peer: riskcal",
            lambda: fp.accounting.calibrate(
                lambda noise: of.gaussian(noise, 0.01).self_compose(100),
                tpr=0.05,
                fpr=0.01,
                tolerance=1e-4,
            ),
            lambda: calibration.find_noise_multiplier_for_err_rates_dpsgd(
                alpha=0.01, beta=0.95, sample_rate=0.01, num_steps=100
            ),
        ),
    ]


def main() -> None:
    """Print one line for each question."""
    warnings.simplefilter("ignore")
    for name, ours, theirs in peers():
        bracket, seconds = timed(ours)
        try:
            answer, other = timed(theirs)
        except Exception as error:  # a peer may lack the function
            answer, other = f"{type(error).__name__}: {error}", 0.0
        width = bracket.width / bracket.upper
        print(f"{name}\n  fastpriv {bracket} width {width:.1e} {seconds:.2f} s")
        print(f"  peer {answer} {other:.2f} s")


if __name__ == "__main__":
    main()
