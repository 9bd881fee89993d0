"""Named mechanisms of the papers, with their calibration and their leakage.

``gaussian`` and ``max_entropy`` add noise; ``amplitude`` is the capacity of a bounded input behind
normal noise. ``counting`` counts ones. ``exponential``, ``selection`` and ``symmetric`` choose an
output. ``noisy_query`` and ``noisy_sums`` measure noise on a given query, by the tables of
``noise``. ``planar`` adds noise to the cells of a grid. ``memoised`` repeats an answer.

Examples
--------
>>> import fastpriv as fp
>>> fp.mechanisms.MaxEntropyNoise(1, 2.0)
MaxEntropyNoise(p=1, distortion=2, entropy=2.406059)
"""

from fastpriv._core.names import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
