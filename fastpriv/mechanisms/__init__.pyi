from .counting import GeometricCount, laplace_count_leakage, laplace_count_pml
from .exponential import exponential, exponential_entropy, exponential_rate
from .gaussian import (
    GaussianChannel,
    GaussianComparison,
    GaussianNoise,
    compare_gaussian,
    gaussian_delta,
    gaussian_distortion,
    gaussian_variance,
    mean_deviation_bound,
    noise_comparison,
)
from .max_entropy import MaxEntropyNoise
from .memoised import Memoised
from .noisy_query import (
    QueryInformation,
    gaussian_query_capacity,
    gaussian_query_information,
    laplace_query_capacity,
    laplace_query_information,
    laplace_query_leakage,
    laplace_query_pml,
)
from .noisy_sums import SumQuery
from .planar import planar_geometric, planar_laplace
from .selection import permute_and_flip, report_noisy_max
from .symmetric import binary_symmetric, binary_symmetric_flip

__all__ = [
    "GaussianChannel",
    "GaussianComparison",
    "GaussianNoise",
    "GeometricCount",
    "MaxEntropyNoise",
    "Memoised",
    "QueryInformation",
    "SumQuery",
    "binary_symmetric",
    "binary_symmetric_flip",
    "compare_gaussian",
    "exponential",
    "exponential_entropy",
    "exponential_rate",
    "gaussian_delta",
    "gaussian_distortion",
    "gaussian_query_capacity",
    "gaussian_query_information",
    "gaussian_variance",
    "laplace_count_leakage",
    "laplace_count_pml",
    "laplace_query_capacity",
    "laplace_query_information",
    "laplace_query_leakage",
    "laplace_query_pml",
    "mean_deviation_bound",
    "noise_comparison",
    "permute_and_flip",
    "planar_geometric",
    "planar_laplace",
    "report_noisy_max",
]
