"""Figures of given data, for objects that draw themselves.

``style`` has colours, axes and legends, ``safe`` lines that never cross the curve they stand for,
``results`` the figures, and ``figure`` files with fonts that journals take.
"""
