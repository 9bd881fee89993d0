"""Exact optima of the privacy-distortion programs, in rational arithmetic.

``point`` solves at one level and ``curve`` at all levels. ``program`` states the program in
integers, ``simplex`` solves it, ``pieces`` finds where a basis stays optimal, ``solution`` holds
the result, and ``arithmetic`` has fractions near e^epsilon and integer systems.
"""
