"""A privacy budget in memory or in a file.

``ledger`` is the public class with receipts and exports, ``budget`` the limits and the charges,
``store`` the SQLite file, ``amounts`` exact decimals. ``levels`` measures a channel and
``profiles`` composes privacy profiles: both load the kernels and are imported when needed.
"""
