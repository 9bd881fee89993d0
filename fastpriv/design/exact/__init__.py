"""Exact optima of the privacy-distortion programs, in rational arithmetic.

``point`` solves at one level and ``curve`` at all levels. ``program`` states the program in
integers, ``simplex`` solves it, and ``pieces`` finds the levels at which a basis stays optimal.
``solution`` holds the result. ``arithmetic`` has fractions near e^epsilon and integer systems.
"""
