"""Structure that priors and channels share.

``rows`` has channels on single records and ``leakage`` their leakage under a vector of
probabilities. ``counts`` has multinomials, ``types`` classes of databases under permutations,
``type_pairs`` tables over pairs of types, ``johnson`` the same for bits, ``geometry`` finite
projective geometries, ``neighbours`` graphs and metrics over databases.
"""
