"""From a table to a sanitised table and back to its frequencies.

``release`` is the public call and its charge to a ledger; ``report`` measures a plan and
writes JSON and HTML; ``registry`` reads and writes files of the public registry of deployments;
``frequencies`` estimates counts. Below them: ``plan`` (which channel),
``estimator`` (undoing it), ``messages`` (local mechanisms), ``tables`` (kinds) and ``domain``.
"""
