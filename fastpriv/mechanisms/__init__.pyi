from .max_entropy import MaxEntropyNoise

__all__ = ["MaxEntropyNoise"]
