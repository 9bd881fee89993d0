from .exponential import exponential, exponential_entropy, exponential_rate
from .gaussian import GaussianChannel, gaussian_variance
from .symmetric import binary_symmetric, binary_symmetric_flip
from .utility import mean_deviation_bound, noise_comparison

__all__: list[str] = [
    "GaussianChannel",
    "binary_symmetric",
    "binary_symmetric_flip",
    "exponential",
    "exponential_entropy",
    "exponential_rate",
    "gaussian_variance",
    "mean_deviation_bound",
    "noise_comparison",
]
