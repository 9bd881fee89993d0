"""Attributes U of a database: the channel p(y|u) that an output is for them.

An attribute is a label for every database, a function of the database or of one record, or a kernel
p(u|x). Given the prior, U -> X -> Y is a channel p(y|u) = sum_x p(x|u) p(y|x) with the distribution
p(u), and every measure of X has its analogue about U.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import log_down, raised, sum_error
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.information import told_information
from fastpriv._matrices.leakage import TINY, Leakages, matrix_leakages
from fastpriv._structure.leakage import tropical
from fastpriv.channels import AbstractChannel, HammingChannel, ProductChannel, QueryChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.chain_records import CHAIN_ERROR, chain_contexts, information_off
from fastpriv.measures.groups import Group, contexts, is_short, loses_contexts, rare_outputs
from fastpriv.measures.inputs import as_pair, is_stack, row_number, table
from fastpriv.priors import Distribution, Markov
from fastpriv.priors.base import apply_rows
from fastpriv.results import Bracket

#: Most values of a record that an attribute is asked for.
_VALUES = 1 << 20
#: Most databases that a function of the database is called for.
_CALLS = 1 << 20
#: A function of the value of one record.
RowFunction = Callable[[int], Hashable] | Mapping[int, Hashable] | Sequence[Hashable]
#: Labels of all databases, a kernel p(u|x), or a function.
Attribute = ArrayLike | RowFunction | Callable[[tuple[int, ...]], Hashable]


class Secret(NamedTuple):
    """The channel p(y|u) for the values of an attribute that occur.

    ``logs`` are the logarithms of ``law``, p(u), if some of it underflows. ``error`` bounds the
    relative error of the matrix. ``rare`` marks outputs that are possible and whose probability
    underflows. ``lost`` bounds the total variation by which rounding moves the joint distribution.
    """

    matrix: Floats
    law: Floats
    logs: Floats | None
    error: float
    rare: NDArray[np.bool_]
    lost: float = 0.0

    def information(self) -> float:
        """Return I(U; Y)."""
        return told_information(self.matrix, self.law)

    def leakages(self) -> Leakages:
        """Return both leakages of every output. Rounded up.

        No output leaks more than -ln p(u) of the rarest u, which is the bound for rare outputs.
        """
        if len(self.law) == 1:  # a constant attribute
            return Leakages(*np.zeros((2, self.matrix.shape[1])))
        above, below = matrix_leakages(self.matrix, self.law, self.error, self.logs)
        least = self.law.min() if self.logs is None else 0.0
        most = -log_down(float(least)) if self.logs is None else raised(-self.logs.min(), 64.0)
        above = np.where(self.rare, most, np.minimum(above, most))
        return Leakages(above, np.where(self.rare, math.inf, below))


def secret_of(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None,
    attribute: Any,
    row: Any = None,
) -> Secret:
    """Return the channel from an attribute to every output, under a prior.

    Cost O(N K) for a matrix. Channels that act record by record cost O(N n) for each value of the
    attribute.
    """
    mechanism, law = _pair(channel, prior)
    given, total, logs = _conditional(law, _kernel(mechanism, attribute, row))
    error = sum_error(2.0 * mechanism.space.size, 32.0) + mechanism.matrix_error
    kernels = mechanism.kernels if type(mechanism) in (ProductChannel, HammingChannel) else None
    if kernels is not None:
        count = len(total) * mechanism.output_count
        check.fits(
            count, "a distribution of the output per value of the attribute", "use fewer records"
        )
        laws = [apply_rows(_line(given, u), kernels) for u in range(len(total))]
        matrix = np.stack(laws)
    else:
        matrix = np.ascontiguousarray(given @ table(mechanism))
    rare = total @ matrix < TINY
    if rare.any():
        rare &= _possible(mechanism, law)
    return Secret(matrix, total, logs, error, rare)


def _possible(channel: AbstractChannel, prior: Distribution) -> NDArray[np.bool_]:
    """Return which outputs can occur, including those whose probability underflows."""
    logs = prior.logs_if_rare()
    occurs = prior.probabilities() > 0.0 if logs is None else logs > -math.inf
    if type(channel) in (ProductChannel, HammingChannel):
        assert channel.kernels is not None
        reached = tropical(np.where(occurs, 0.0, -math.inf), channel.kernels, np.maximum)
        return np.asarray(reached > -math.inf)
    return np.asarray((table(channel)[occurs] > 0.0).any(axis=0))


def secrets_of(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None,
    attribute: Any,
    row: Any = None,
) -> tuple[Secret, Secret]:
    """Return the channel from an attribute to a sufficient statistic of the output.

    For an attribute of one record the structure of channel and prior is used. The two channels are
    the same, unless a long Markov chain has only bounds: then the first reveals less than the
    output, and the second more.
    """
    mechanism, law = _pair(channel, prior)
    own = getattr(mechanism, "as_product", mechanism)
    if row is None or not isinstance(own, ProductChannel | QueryChannel):
        secret = secret_of(mechanism, law, attribute, row)
        return secret, secret
    i = row_number(mechanism, row)
    codes = row_codes(attribute, i, mechanism.space.sizes[i])
    error = mechanism.matrix_error
    if isinstance(own, QueryChannel):
        joint = own.query.group_law(law, (i,))
        error += sum_error(16.0 * own.space.n, 128.0) + own.matrix_error
        error += own.query.law_error + sum_error(2.0 * joint.shape[1], 16.0)
        merged = _merged(joint, codes)
        total = merged.sum(axis=1)
        laws = merged[total > 0.0] / total[total > 0.0, None] @ own.kernel.matrix
        secret = Secret(laws, total[total > 0.0], None, error, rare_outputs(own, law, laws))
        return secret, secret
    return context_secrets(own, law, (i,), codes, error)


def context_secrets(
    channel: ProductChannel, prior: Distribution, group: Group, codes: Ints, error: float = 0.0
) -> tuple[Secret, Secret]:
    """Return the channels from a function of some records to contexts and their own outputs.

    ``codes`` numbers the values of the function over the settings of the group. Contexts whose
    probability underflows are left out of the first channel; the second has one rare output in
    their place.
    """
    kernels, rare, lost = channel.kernels, False, 0.0
    error += sum_error(16.0 * channel.space.n, 128.0) + channel.matrix_error
    if not isinstance(prior, Markov) or is_short(prior, kernels):
        joint = contexts(prior, kernels, group)
        found, rare = [joint], loses_contexts(prior, kernels, group, joint)
    else:
        assert len(group) == 1
        bounds = chain_contexts(prior, kernels, group[0])
        found = [bounds.lower] if bounds.exact else [bounds.lower, bounds.upper]
        lost, marginal = bounds.lost, bounds.upper.sum(axis=0)
        error += CHAIN_ERROR + lost / float(marginal[marginal > 0.0].min())
    own: Floats = np.ones((1, 1))
    for i in group:
        own = np.asarray(np.kron(own, kernels[i].matrix), np.float64)
    secrets = []
    for context in found:
        joint = context.T[:, :, None] * own[:, None, :]  # [x_G, context, y_G]
        merged = _merged(joint.reshape(len(own), -1), codes)
        total = merged.sum(axis=1)
        seen = total > 0.0
        never = np.zeros(merged.shape[1], dtype=bool)
        laws = np.ascontiguousarray(merged[seen] / total[seen, None])
        secrets.append(Secret(laws, total[seen], None, error, never, lost))
    if rare:
        known = secrets.pop()
        exact = np.ascontiguousarray(known.matrix[:, known.law @ known.matrix >= TINY])
        marks = np.arange(exact.shape[1] + 1) == exact.shape[1]
        secrets.append(known._replace(matrix=exact, rare=marks[:-1]))
        wider = np.pad(exact, ((0, 0), (0, 1)))
        secrets.append(known._replace(matrix=wider, rare=marks))
    return secrets[0], secrets[-1]


def secret_information(secrets: tuple[Secret, Secret]) -> float | Bracket:
    """Return I(U; Y), or a bracket if there are only bounds."""
    low = secrets[0].information()
    if secrets[0] is secrets[1]:
        return low
    high = secrets[1].information()
    lost = secrets[0].lost
    least = max(0.0, low - information_off(low, lost))
    return Bracket(least, max(least, high + information_off(high, lost)))


def secret_level(secrets: tuple[Secret, Secret]) -> float | Bracket:
    """Return the largest leakage of an output about U, or a bracket if there are only bounds."""
    high = float(secrets[1].leakages().above.max())
    if secrets[0] is secrets[1]:
        return high
    low = float(secrets[0].leakages().above.max()) - 16.0 * secrets[0].error
    return Bracket(min(max(low, 0.0), high), high)


def whole_channel(channel: Any, attribute: Any, out: Any = None) -> None:
    """Refuse a stack of channels, or the number of a record without an attribute of it."""
    if attribute is None:
        raise InvalidInput(
            "attribute must be given if row is, and for maximal_leakage if prior is; got None. "
            "Pass attribute=, or see row_information and row_pml."
        )
    if is_stack(channel, out):
        raise InvalidInput(
            "channel must be one mechanism if an attribute or records are given; got a stack. "
            "Measure the channels one by one."
        )


def _pair(channel: Any, prior: Any) -> tuple[AbstractChannel, Distribution]:
    if prior is None:
        raise InvalidInput(
            "prior must be a distribution if an attribute is given; got None. Pass a prior."
        )
    return as_pair(channel, prior)


def _merged(joint: Floats, codes: Ints) -> Floats:
    """Add up the lines of values with the same code."""
    merged = np.zeros((int(codes.max()) + 1, joint.shape[1]))
    np.add.at(merged, codes, joint)
    return merged


def _kernel(channel: AbstractChannel, attribute: Any, row: Any) -> Ints | Floats:
    """Return an attribute as a code for every database (1-D), or as a matrix p(u|x)."""
    space = channel.space
    if row is not None:
        i = row_number(channel, row)
        codes = row_codes(attribute, i, space.sizes[i])
        check.fits(space.size, "the attribute of every database", "use fewer records")
        lanes = np.broadcast_to(codes[:, None], (len(codes), int(space.strides[i])))
        return np.tile(lanes.reshape(-1), space.size // lanes.size)
    if isinstance(attribute, Mapping) or (callable(attribute) and space.n == 1):
        if space.n > 1:
            raise InvalidInput("row must be given with a function of one record. Pass row=i.")
        return row_codes(attribute, 0, space.sizes[0])
    if callable(attribute):
        check.fits(space.size, "the attribute of every database", "list the labels", _CALLS)
        rows = space.rows(np.arange(space.size)).tolist()
        return label_codes([_called(attribute, tuple(values)) for values in rows])
    plain = isinstance(attribute, list | tuple) and all(np.isscalar(v) for v in attribute)
    words = plain or (isinstance(attribute, np.ndarray) and attribute.dtype.kind in "USO")
    given = np.asarray(attribute) if words else check.array(attribute, "attribute")
    if given.ndim not in (1, 2) or len(given) != space.size:
        raise InvalidInput(
            f"attribute must hold a label or a row p(u|x) for each of the {short(space.size)} "
            f"databases; got shape {given.shape}. For a function of one record, give row=i."
        )
    if given.ndim == 2:
        return check.stochastic(given, "attribute")
    return label_codes(given.tolist())


def _conditional(prior: Distribution, kernel: Ints | Floats) -> tuple[Any, Floats, Floats | None]:
    """Return p(x|u) for the values of an attribute that occur, p(u), and its logs if rare."""
    from scipy.sparse import csr_array

    p, logs = prior.probabilities(), prior.logs_if_rare()
    size = len(p)
    if kernel.ndim == 1:
        codes, count = kernel.astype(np.int64), int(kernel.max()) + 1
        chances, at = p, np.arange(size)
    else:
        at, codes = np.nonzero(kernel)
        count = kernel.shape[1]
        chances = p[at] * kernel[at, codes]
    if logs is None:
        total = np.bincount(codes, chances, count)
        seen = total > 0.0
        shares = chances / np.where(seen, total, 1.0)[codes]
        log_total = None
    else:
        with np.errstate(divide="ignore"):
            terms = logs[at] + (0.0 if kernel.ndim == 1 else np.log(kernel[at, codes]))
        log_total = np.full(count, -math.inf)
        np.logaddexp.at(log_total, codes, terms)
        seen = log_total > -math.inf
        shares = np.exp(terms - np.where(seen, log_total, 0.0)[codes])
        total, log_total = np.exp(log_total), log_total[seen]
    given = csr_array((shares, (codes, at)), shape=(count, size))[np.flatnonzero(seen)]
    return given, np.asarray(total[seen], np.float64), log_total


def _line(given: Any, u: int) -> Floats:
    return np.asarray(given[[u]].toarray().reshape(-1))


def row_codes(attribute: Any, row: int, m: int) -> Ints:
    """Return a number for each value of a record; equal numbers mean equal attributes."""
    check.fits(m, "the attribute of every value of the row", "merge values", _VALUES)
    if callable(attribute):
        labels = [_called(attribute, value) for value in range(m)]
    elif isinstance(attribute, Mapping):
        missing = [value for value in range(m) if value not in attribute]
        if missing or len(attribute) != m:
            raise InvalidInput(
                f"the mapping must have a label for each of the values 0 .. {m - 1} of row {row} "
                f"and no others; got {len(attribute)} labels."
            )
        labels = [attribute[value] for value in range(m)]
    else:
        try:
            labels = np.asarray(attribute).tolist() if np.ndim(attribute) == 1 else []
        except (TypeError, ValueError):
            labels = []
        if len(labels) != m:
            raise InvalidInput(
                f"with row={row} the attribute must be a function of the value of this row, a "
                f"mapping from its values or a list of {m} labels."
            )
    return label_codes(labels)


def label_codes(labels: Sequence[Any]) -> Ints:
    """Return a number for each label; equal numbers mean equal labels."""
    numbers: dict[Hashable, int] = {}
    try:
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    except TypeError:
        raise InvalidInput(
            "labels must be numbers, strings or other values that can be compared. Convert "
            "them by str."
        ) from None


def _called(attribute: Callable[..., Hashable], value: int | tuple[int, ...]) -> Hashable:
    try:
        return attribute(value)
    except Exception as error:
        raise InvalidInput(
            "attribute must be a function of one value of the record; it failed at the value "
            f"{value}. Mend the function."
        ) from error
