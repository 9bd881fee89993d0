"""Privacy measures: one number per notion, each a formula over a channel's primitives.

``inputs`` checks what users give. ``levels`` lists the function of each notion. Every other file
is one measure: its public function, its general algorithm through the matrix, and the shortcuts
for channels and priors of a known structure. ``individual`` and ``pointwise`` are folders.
"""
