"""Kinds of private computations, each with its losses in both directions.

finite: channels, randomised response, discrete noise, curves from points. gaussian: Gaussian noise
and mixtures. laplace: Laplace noise and bounded range. sampling: samples of these. shuffling and
allocation: steps whose curve is computed level by level.
"""
