from .ledger import Ledger, Receipt

__all__ = [
    "Ledger",
    "Receipt",
]
