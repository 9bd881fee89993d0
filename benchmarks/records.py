"""A run of the benchmarks as records: what pytest-benchmark wrote, one record per contender."""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Note of an answer that is infinite, which JSON has no number for.
INFINITE = "infinite answer"


def says(meaning, default=None):
    """A field of a record with its meaning, which the generated page repeats."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass
class Record:
    """One contender on one instance; None where a field does not apply."""

    topic: str = says("file, without bench_ and .py")
    question: str = says("what was asked")
    instance: str = says("of what")
    seed: int | str | None = says("seed of the instance in benchmarks/instances.py")
    solver: str = says("fastpriv, or the peer")
    kind: str = says("ours, peer, or yardstick (such as a copy: no contest)")
    items: int = says("units that one call answers for", 1)
    unit: str = says("what the time is of: a call, a row, a draw", "call")
    value: float | None = says("the answer, as a number")
    error: float | None = says("how far the answer may be or is from the truth")
    error_of: str | None = says("what error measures")
    target: float | None = says("error that was asked for; errors below it count as equal")
    sound: bool | None = says("whether the answer is on the safe side")
    lower: float | None = says("in our entry: a proved lower bound of the answer")
    line: str | None = says("the call, as a line of Python")
    growth: float | None = says("time over the time at the size before")
    promised: float | None = says("the same by the cost in the docstring")
    headline: bool = says("whether the README shows it", False)
    note: str | None = says("what is unusual, such as a single round or an infinite answer")
    absent: Mapping[str, str] | None = says("in our entry: who was not timed, and why")
    seconds: float | None = None
    status: str = "ok"


def records_of(results):
    """The records of a run: one for each entry, and one for each contender that was not timed.

    A time is the least of the rounds, divided by the number of items.
    """
    records = []
    for entry in results["benchmarks"]:
        record = Record(**entry["extra_info"])
        record.seconds = entry["stats"]["min"] / record.items
        records.append(record)
        for name, reason in (record.absent or {}).items():
            place = {"topic": record.topic, "question": record.question}
            place |= {"instance": record.instance, "headline": record.headline}
            records.append(Record(**place, solver=name, kind="peer", status=reason))
    # The sort is stable: it brings those together who answered the same question, timed ones first.
    order = {}
    for record in records:
        order.setdefault((record.topic, record.question, record.instance), len(order))
    topics = sorted({record.topic for record in records})

    def place_of(record):
        asked = record.topic, record.question, record.instance
        return topics.index(record.topic), order[asked], record.status != "ok"

    return sorted(records, key=place_of)
