"""A small table of people, its domain, and the same as a frame."""

from itertools import product
from pathlib import Path

import pandas as pd

DATA = Path(__file__).parent / "data"
DOMAIN = {"sex": ["F", "M"], "age": [1, 2, 3]}
PEOPLE = [{"sex": s, "age": a} for s, a in product(*DOMAIN.values())] * 50


def frame(**types):
    return pd.DataFrame(PEOPLE).astype(types)
