"""Audits: how private a mechanism is, in every notion at once and in words.

``run`` has ``audit``, ``compare`` two audits, ``many`` the cheap levels of many mechanisms.
``case`` measures, ``sentences`` has the measure, meaning and worst case of each notion, ``report``
is the result and ``page`` writes it as HTML.
"""
