from .counting import GeometricCount, laplace_count_leakage, laplace_count_pml
from .gaussian_comparison import (
    GaussianComparison,
    compare_gaussian,
    gaussian_delta,
    gaussian_distortion,
)
from .gaussian_noise import GaussianNoise
from .max_entropy import MaxEntropyNoise

__all__ = [
    "GaussianComparison",
    "GaussianNoise",
    "GeometricCount",
    "MaxEntropyNoise",
    "compare_gaussian",
    "gaussian_delta",
    "gaussian_distortion",
    "laplace_count_leakage",
    "laplace_count_pml",
]
