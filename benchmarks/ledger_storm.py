"""Processes that spend from one ledger file while some of them are killed.

Run ``python benchmarks/ledger_storm.py [rounds] [processes]``. In every round 8 processes spend a
hundredth of the budget at a time from a new file until it is used up; some are killed at random
moments (SIGKILL). Each writes down what was acknowledged to it. After the round: every
acknowledged spend must be in the ledger, the totals must be the sum of the entries, and the
budget must not be exceeded; where somebody survived, it must be spent to the last decimal.
"""

import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

from fastpriv.accounting import Ledger
from fastpriv.errors import BudgetExceeded

BUDGET, LEVEL = 1.0, 0.01


def spender(path, acknowledged):
    """Spend until nothing is left, writing down every acknowledgement."""
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger, made = Ledger.open(path, {"dp": BUDGET}), 0
    while True:
        label = f"{os.getpid()}-{made}"
        try:
            ledger.spend({"dp": LEVEL}, label=label)
        except BudgetExceeded:
            os._exit(0)
        os.write(log, f"{label}\n".encode())
        made += 1


def start(path, acknowledged):
    """Start a spender and return its process id."""
    child = os.fork()
    if child == 0:
        try:
            spender(path, acknowledged)
        finally:
            os._exit(1)
    return child


def storm_round(folder, processes, rng):
    """One file, its processes and kills; return counts of what happened."""
    path, acknowledged = folder / "ledger.db", folder / "acknowledged"
    running = [start(path, acknowledged) for _ in range(processes)]
    victims = rng.sample(running, rng.randint(1, processes))
    for victim in victims:
        time.sleep(rng.expovariate(1 / 0.008))
        os.kill(victim, signal.SIGKILL)
    codes = [os.waitpid(child, 0)[1] for child in running]
    survived = sum(code == 0 for code in codes)
    killed = sum(os.WIFSIGNALED(code) and os.WTERMSIG(code) == signal.SIGKILL for code in codes)
    found = Counter(rounds=1, killed=killed, failed=processes - survived - killed)
    if not path.exists():
        return found
    said = acknowledged.read_text().split() if acknowledged.exists() else []
    with sqlite3.connect(path) as plain:  # the file as SQLite sees it, without our code
        sound = plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    plain.close()
    with Ledger.open(path, {"dp": BUDGET}) as ledger:  # made by the killed, or by us
        kept = Counter(receipt.label for receipt in ledger.history())
        total = Decimal(repr(ledger.spent["dp"]))
    found["acknowledged"] = len(said)
    found["in the ledger"] = kept.total()
    found["lost"] = sum(kept[label] != 1 for label in said)
    found["damaged"] = not sound
    found["wrong totals"] = total != Decimal(repr(LEVEL)) * kept.total()
    found["overspent"] = total > Decimal(repr(BUDGET))
    found["used up"] = total == Decimal(repr(BUDGET))
    found["left over with survivors"] = survived > 0 and total != Decimal(repr(BUDGET))
    return found


def main(rounds=500, processes=8, seed=0):
    rng, counts, begun = random.Random(seed), Counter(), time.perf_counter()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            counts.update(storm_round(Path(folder), processes, rng))
    for name, count in counts.items():
        print(f"{name:<26}{count:>8}")
    print(f"{'seconds':<26}{time.perf_counter() - begun:>8.1f}")
    wrong = ("lost", "damaged", "wrong totals", "overspent", "failed", "left over with survivors")
    return sum(counts[name] for name in wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
