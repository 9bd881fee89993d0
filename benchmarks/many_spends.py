"""Distinct spends of one (epsilon, delta) ledger: what each costs, as they become many.

Run ``python benchmarks/many_spends.py [spends] [--file]``; 200 in memory unless told. Every spend
declares another level, so that nothing is equal and all profiles have to be composed. It prints
the processor time of the spends so far, of the last ten of them and of the slowest, and checks the
level at the end against a composition from scratch, whose time stands beside it.
"""

import sys
import tempfile
import time
from pathlib import Path

from fastpriv.accounting import Ledger
from fastpriv.accounting.ledger.profiles import composed_epsilon

DELTA = 1e-6


def main(count, in_file):
    """Spend, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        budget = {"approximate-dp": (1e6, DELTA)}
        ledger = Ledger.open(Path(folder) / "ledger", budget) if in_file else Ledger(budget)
        ledger.spend({"dp": 1e-5}, label="kernels are loaded")
        times = []
        for k in range(count):
            start = time.process_time()
            ledger.spend({"dp": 0.01 + 1e-5 * ((7919 * k) % 10_007)})
            times.append(time.process_time() - start)
            if k + 1 in (count, *(10**j * i for j in (1, 2, 3, 4) for i in (1, 2, 5))):
                last = sum(times[-10:]) / 10
                print(
                    f"{k + 1:>6} spends {sum(times):>8.2f} s, the last ten {1e3 * last:>7.1f} ms "
                    f"each, the slowest {max(times):>6.2f} s"
                )
        parts = ledger._store.state().parts
        start = time.process_time()
        scratch = composed_epsilon(parts, DELTA)
        seconds = time.process_time() - start
        level = ledger.spent["approximate-dp"]
        print(f"epsilon {level!r}; from scratch {scratch!r} in {seconds:.2f} s")
        assert abs(level - scratch) <= 1e-5 * scratch
        ledger.close()


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:] if given.isdigit()]
    main(numbers[0] if numbers else 200, "--file" in sys.argv)
