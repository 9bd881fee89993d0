"""How results are written.

``numbers`` rounds and formats, ``encoding`` writes JSON, ``html`` pages, ``table`` aligned text and
``tabular`` frames, CSV and LaTeX.
"""
