from .implications import Step
from .notion import Notion
from .registry import NOTIONS

__all__ = [
    "NOTIONS",
    "Notion",
    "Step",
]
