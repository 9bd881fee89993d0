"""Branch and bound over matrices.

``selection`` finds the best row from each of several slices, with ``cliques``, which lists
compatible rows. ``strategies`` finds the prior of largest leakage for one gain, and ``entropy`` the
prior of largest information about one record under an entropy constraint, by ``entropy_parts``.
"""
