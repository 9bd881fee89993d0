"""Methods that bound delta(t) of a composition, each in one file; strategy.py tries them in order.

closed_form: one step. lattice: listed sums. contour: the integral, also with many angles or
smoothed. large_loss: one loss taken apart. grid: from both sides. bounded_range: adaptive choices.
"""
