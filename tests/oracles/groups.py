"""Attributes and groups of records, from the joint law of the attribute and the output."""

import math
from itertools import product


def setting_labels(sizes, group):
    """Return the setting of a group of records in every database, in C order."""
    databases = product(*(range(m) for m in sizes))
    return [tuple(database[i] for i in group) for database in databases]


def joint_law(W, p, attribute):
    """Return joint[u][y] of an attribute and the output; labels, or rows p(u|x) as dicts."""
    joint = {}
    for x, label in enumerate(attribute):
        chances = label if isinstance(label, dict) else {label: 1.0}
        for u, chance in chances.items():
            line = joint.setdefault(u, [0.0] * len(W[x]))
            for y, w in enumerate(W[x]):
                line[y] += p[x] * chance * w
    return [line for line in joint.values() if sum(line) > 0.0]


def information(joint):
    """Return I(U; Y)."""
    outputs = list(map(sum, zip(*joint, strict=True)))
    return math.fsum(
        v * math.log(v / (sum(line) * outputs[y]))
        for line in joint
        for y, v in enumerate(line)
        if v > 0.0
    )


def leakages(joint):
    """Return ln max_u p(y|u)/p(y) for every y, 0 for outputs that never occur."""
    outputs = list(map(sum, zip(*joint, strict=True)))
    return [
        math.log(max(line[y] / sum(line) for line in joint) / q) if q > 0.0 else 0.0
        for y, q in enumerate(outputs)
    ]


def maximal_leakage(joint):
    """Return ln sum_y max_u p(y|u)."""
    return math.log(sum(max(line[y] / sum(line) for line in joint) for y in range(len(joint[0]))))


def entropy(joint):
    """Return H(U)."""
    return -math.fsum(sum(line) * math.log(sum(line)) for line in joint)
