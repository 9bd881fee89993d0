"""The ``fastpriv`` command: parse, call, print.

``main`` runs the commands: ``audit`` (with compare and capacity), ``solve``, ``tradeoff``,
``release``, ``estimate``, ``ledger`` and ``setup`` (warm-up and completion). ``parser`` has their
options, ``specs`` the grammar of names with parameters, ``mechanisms`` what these names stand for,
and ``files`` reads and writes.
"""
