"""A privacy budget in memory, in a file or on a server.

``ledger`` is the public class with receipts, ``budget`` the limits and the charges, ``exports`` the
chain read again, ``store`` the tables of all stores, ``sqlite`` and ``postgres`` the two kinds of
them, ``amounts`` exact decimals. ``levels`` measures a channel and ``profiles`` composes privacy
profiles: both load the kernels and are imported when needed.
"""
