"""The ``fastpriv`` command: parse, call, print.

``main`` runs the commands: ``audit`` (with compare and capacity), ``solve``, ``tradeoff``,
``release``, ``estimate``, ``ledger`` and ``setup`` (warm-up and completion). ``parser`` has their
options, ``mechanisms`` the names with parameters that they take, and ``files`` reads and writes.
"""
