"""Privacy measures: one number per notion, computed from a channel.

``inputs`` checks the arguments. ``levels`` lists the function of each notion. Every other module
holds one measure: its public function, its general algorithm on the matrix, and shortcuts for
channels and priors of a known structure. ``individual`` and ``pointwise`` are packages.
"""
