from .exponential import exponential, exponential_entropy, exponential_rate
from .symmetric import binary_symmetric, binary_symmetric_flip

__all__: list[str] = [
    "binary_symmetric",
    "binary_symmetric_flip",
    "exponential",
    "exponential_entropy",
    "exponential_rate",
]
