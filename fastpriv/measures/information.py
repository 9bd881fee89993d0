"""Mutual information between database and output."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels as compiled
from fastpriv._core.logs import gain
from fastpriv._core.validation import Floats
from fastpriv._matrices.information import told_information
from fastpriv._matrices.tilted import FORMED, excess_information
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    PosteriorChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.channels.tilted import PosteriorChain, TiltedProduct, TypeTilt
from fastpriv.channels.types import TypeChannel
from fastpriv.measures import supports
from fastpriv.measures.attributes import (
    Attribute,
    secret_information,
    secrets_of,
    whole_channel,
)
from fastpriv.measures.distortion import tilted_distances
from fastpriv.measures.inputs import as_pair, is_stack, plain_pair, plainly, stacked, table
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.base import apply_rows
from fastpriv.priors.exchangeable import substitute, without_one
from fastpriv.priors.markov import chain_information
from fastpriv.results import Bracket

__all__ = ["mutual_information"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike
#: Information above has all its digits; less may come from terms that underflow.
_ORDINARY = 2.0**-900


@overload
def mutual_information(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def mutual_information(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    attribute: Attribute,
    row: int | None = ...,
) -> float | Bracket: ...
@overload
def mutual_information(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Bracket | Floats: ...
def mutual_information(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    attribute: Attribute | None = None,
    row: int | None = None,
    out: Floats | None = None,
) -> float | Bracket | Floats:
    """Compute the mutual information I(X; Y) between database and output, or I(U; Y).

    I(X; Y) = sum p(x) q(y) f(W[x, y]/q(y) - 1) with f(d) = (1+d) ln(1+d) - d, a sum of non-negative
    terms (Wang-Ying-Zhang 2015, Definition 4). Here q is the output distribution.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), one for each channel.
    attribute : 1-D array, 2-D array, function or mapping, optional
        An attribute U of the database, instead of the database itself: a label for every database,
        a kernel p(u|x) with one row for every database, or a function of the database (a tuple of
        values; the value if there is one record). With ``row=i``, a function of x_i: a callable, a
        mapping from the values of record i, or a list of m_i labels.
    row : int, optional
        Number of the record that the attribute is a function of.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float or Bracket, or array of length B for a stack
        Information in nats, rounded to nearest. The relative error is below 1e-12 for values above
        1e-307. The value 0 means that the output reveals nothing. A proved bracket for Markov
        priors that are too long for the exact sum.

    Notes
    -----
    The error bound has two exceptions. If the rows of a product's factors do not sum to one, the
    error may be the square of the difference, about 1e-32. A tilted mechanism on more than 1,024
    databases that is no product has an absolute error of some ulp of n ln m.

    Cost O(N K) for a matrix. Randomised response costs O(N n) for a dense prior, O(n^2) for
    exchangeable bits, and O(distinct records) for a product.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mutual_information(fp.HammingChannel(10, 2, 1.0), fp.Uniform(10, 2)), 6)
    1.109441
    >>> stack = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> fp.mutual_information(stack, [0.5, 0.5]).round(6)
    array([0.693147, 0.      ])
    >>> age = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    >>> round(fp.mutual_information(age, [0.2, 0.3, 0.5], attribute=[0, 0, 1]), 6)  # adult or not
    0.181005
    """
    if attribute is not None or row is not None:
        whole_channel(channel, attribute, out)
        return secret_information(secrets_of(channel, prior, attribute, row))
    if (pair := plain_pair(channel, prior)) and out is None:
        value = plainly(compiled.informations, *pair)
        if value >= _ORDINARY:
            return value
    if is_stack(channel, out):
        return stacked(compiled.informations, mutual_information, channel, prior, out)
    mechanism, law = as_pair(channel, prior)
    return information(mechanism, law)


@singledispatch
def information(channel: AbstractChannel, prior: Distribution) -> float | Bracket:
    """Return I(X; Y) for checked arguments.

    The general algorithm uses the matrix. Cost O(N K).
    """
    return told_information(table(channel), prior.probabilities())


@information.register
def _query_information(channel: QueryChannel, prior: Distribution) -> float:
    """Return I(answer; Y), which is I(X; Y).

    Cost O(answers K) and the distribution of the answer.
    """
    return told_information(channel.kernel.matrix, channel.query.law(prior))


@information.register
def _product_information(channel: ProductChannel, prior: Distribution) -> float | Bracket:
    """Record by record, in the structure of the prior."""
    return rows_information(prior, channel.kernels)


@information.register
def _tilted_information(channel: TiltedChannel, prior: Distribution) -> float | Bracket:
    """Use differences of rows if they fit. Otherwise O(N n) for a dense prior.

    Under its own prior it is the information of randomised response on q. Under another dense prior
    it is E ln(R[x, y] / (v(x) c(y))), where v = R q and q c is the distribution of Y. These
    logarithms cancel, so the absolute error is a few ulp of n ln m. Exchangeable records are
    computed by types, at a cost of O(types^2).
    """
    formed = channel.excess()
    if formed is not None:
        return excess_information(formed, channel.base.probabilities(), prior.probabilities())
    if channel.space.size**2 <= FORMED:
        return told_information(channel.nearest_matrix(), prior.probabilities())
    if channel.is_own_prior(prior):
        return rows_information(channel.base, channel.hamming_kernels)
    types, same = channel.by_type, prior.by_type()
    if types is not None and same is not None and types.fits:
        return _tilted_type_information(types, same)
    law, home = channel.base_and_mixture()
    p = prior.probabilities()
    gain = apply_rows(p / home, channel.hamming_kernels)
    with np.errstate(divide="ignore", invalid="ignore"):
        spent = np.where(p > 0, p * np.log(home), 0.0).sum()
        spent += np.where(law * gain > 0, law * gain * np.log(gain), 0.0).sum()
    moved = channel.epsilon * float((p * tilted_distances(channel)).sum())
    return max(0.0, math.log(channel.stay_probability()) - moved - float(spent))


def _tilted_type_information(types: TypeTilt, prior: Exchangeable) -> float:
    """Return E ln(R[x, y] / (v(x) c(y))) over pairs of types of the output and the database."""
    pairs, log_p = types.pairs, types.log_prior(prior)
    gain = pairs.log_sum(pairs.log_joint(log_p - types.log_each)) - pairs.log_output_sizes
    joint = np.exp(types.log_joint(log_p))
    moved = types.kernel.epsilon * pairs.mean_distance
    known = np.where(types.occurs, gain, 0.0)
    terms = joint * (types.log_stay - moved - types.log_each - known[:, None])
    return max(0.0, math.fsum(terms.reshape(-1)))


@information.register
def _posterior_chain_information(channel: PosteriorChain, prior: Distribution) -> float | Bracket:
    """Under its own prior H(X) - n H(row), because every posterior is R. Cost O(n m^2)."""
    if channel.is_own_prior(prior):
        noise = compiled.entropy(channel.hamming_kernels[0].matrix[0])
        return max(0.0, float(prior.entropy()) - channel.space.n * noise)
    return _tilted_information(channel, prior)


@information.register
def _tilted_product_information(channel: TiltedProduct, prior: Distribution) -> float | Bracket:
    """Delegate to the product channel; for a dense prior use differences of rows if they fit.

    Under its own prior E_i is randomised response on q, record by record.
    """
    if isinstance(channel, PosteriorChannel) and channel.is_own_prior(prior):
        return rows_information(channel.base, channel.hamming_kernels)
    formed = None if isinstance(prior, Product) else channel.excess()
    if formed is not None:
        return excess_information(formed, channel.base.probabilities(), prior.probabilities())
    return information(channel.as_product, prior)


@information.register
def _type_information(channel: TypeChannel, prior: Distribution) -> float | Bracket:
    """Add up non-negative terms over classes if records are exchangeable. Cost O(classes)."""
    from scipy.special import kl_div

    weights = channel.type_weights(prior)
    if weights is None:
        return information(channel.as_channel(), prior)
    stack, types = channel.all_classes, channel.types
    law = channel.output_types(weights)
    # The probability that Y falls into the class of this x, if Y were independent of x.
    expected = law[stack.kind] * np.exp(stack.log_outputs - types.log_sizes[stack.kind])
    seen = weights[stack.row] > 0
    mass, mean = channel.class_masses[seen], expected[seen]
    near = np.abs(mass - mean) < 0.5 * mean
    excess = np.where(near, mass - mean, 0.0) / np.where(near, mean, 1.0)
    terms = np.where(near, mean * gain(excess), kl_div(mass, mean))
    return math.fsum(weights[stack.row][seen] * terms)


@information.register
def _support_information(channel: SupportChannel, prior: Distribution) -> float | Bracket:
    """Use the masses of the supports, or a bracket if messages cannot be listed."""
    if channel.is_small():
        return supports.small_information(channel, prior.probabilities()[None])
    return supports.information(channel, prior)


@information.register
def _columns_information(channel: ColumnsChannel, prior: Distribution) -> float | Bracket:
    """Sum over columns if they are independent, otherwise use the chain rule."""
    pairs = supports.independent(channel, prior)
    if pairs is None:
        return _chained(channel, prior.probabilities())
    parts = [information(*pair) for pair in pairs]
    low = math.fsum(part.lower if isinstance(part, Bracket) else part for part in parts)
    high = math.fsum(part.upper if isinstance(part, Bracket) else part for part in parts)
    return Bracket(low, high) if any(isinstance(part, Bracket) for part in parts) else high


def _chained(channel: ColumnsChannel, prefix: Floats) -> float:
    """Return sum_i I(X_i; Y_i | Y_<i). Every term is a sum of non-negative numbers."""
    channel.check_matrix_fits()
    sizes, terms = channel.space.sizes, []
    for i in range(len(sizes) - 1, -1, -1):
        joint = prefix.reshape(sizes[: i + 1])
        for j, past in enumerate(channel.columns[:i]):
            joint = np.moveaxis(np.tensordot(joint, past.nearest_matrix(), (j, 0)), -1, j)
        terms.append(_conditional(channel.columns[i], joint.reshape(-1, sizes[i])))
        prefix = prefix.reshape(-1, sizes[i]).sum(axis=1)
    return math.fsum(terms)


def _conditional(column: AbstractChannel, joint: Floats) -> float:
    """Return I(S; Y | L) times the total of ``joint[l, s]``, a multiple of P(L = l, S = s)."""
    kernels = column.kernels
    if kernels is not None:
        return kernels[0].information(joint)
    if isinstance(column, Channel):
        return RowKernel(column.table()).information(joint)
    if isinstance(column, SupportChannel):
        return supports.small_information(column, joint)
    masses = joint.sum(axis=1)
    laws = [Dense.of(joint[at] / masses[at], column.space) for at in np.flatnonzero(masses)]
    parts = [float(information(column, law)) for law in laws]
    return math.fsum(masses[masses > 0.0] * parts)


@information.register
def _record_information(channel: RecordChannel, prior: Distribution) -> float | Bracket:
    """Use the columns, under the same distribution of the record."""
    return information(channel.columns, channel.columns_prior(prior))


@singledispatch
def rows_information(prior: Distribution, kernels: RowKernels) -> float | Bracket:
    """Return I(X; Y) across a channel that acts record by record, without cancellation.

    The general algorithm uses the vector of the prior, as for :class:`Dense`.
    """
    return rows_information(prior.as_dense("mutual information"), kernels)


@rows_information.register
def _dense_rows_information(prior: Dense, kernels: RowKernels) -> float:
    """Return sum_i I(X_i; Y_i | Y_<i). Every term is a sum of non-negative numbers.

    The i-th term needs the joint distribution of the first i - 1 outputs and record i, which is a
    transform of the distribution of the first i records. Cost O(N n) and three vectors.
    """
    sizes, terms = prior.space.sizes, []
    prefix = prior.probabilities()
    for i in range(prior.space.n - 1, -1, -1):
        past = [kernels[j] for j in range(i)]
        joint = apply_rows(prefix, past, trailing=sizes[i]).reshape(-1, sizes[i])
        terms.append(kernels[i].information(joint))
        prefix = prefix.reshape(-1, sizes[i]).sum(axis=1)
    return math.fsum(terms)


@rows_information.register
def _product_rows_information(prior: Product, kernels: RowKernels) -> float:
    """Return the sum of the information of every record. Cost O(distinct records)."""
    laws, which, counts, _ = prior.paired(kernels)
    return math.fsum(
        c * kernels.distinct[j].information(prior.distinct[k][None, :])
        for k, j, c in zip(laws, which, counts.tolist(), strict=True)
    )


@rows_information.register
def _exchangeable_rows_information(prior: Exchangeable, kernels: RowKernels) -> float | Bracket:
    """Return sum_i I(X_i; Y_i | Y_<i), if only the type of Y_<i matters.

    Cost O(n^2) for m = 2 and O(n (n+1)^(m-1)) for each output value in general.
    """
    if len(kernels.distinct) > 1:
        dense = prior.as_dense("mutual information through different row kernels")
        return rows_information(dense, kernels)
    kernel, n = kernels.distinct[0], prior.space.n
    if kernel.shape[1] == 1:
        return 0.0
    # laws[s] is over types of Y_<n. Apply the channel once, then drop the outputs one by one.
    laws = [part / n for part in without_one(prior.type_weights)]
    if n > 1:
        laws = [substitute(law, kernel.matrix) for law in laws]
    terms = []
    for i in range(n, 0, -1):
        joint = np.stack([law.reshape(-1) for law in laws], axis=-1)
        terms.append(kernel.information(joint))
        if i > 1:
            laws = [np.asarray(sum(without_one(law))) / (i - 1) for law in laws]
    return math.fsum(terms)


@rows_information.register
def _markov_rows_information(prior: Markov, kernels: RowKernels) -> float | Bracket:
    """Return the exact sum if the distribution of the outputs fits, a proved bracket otherwise."""
    return chain_information(prior, kernels)


def through_entries(prior: Distribution) -> int:
    """Return how many numbers a pass over the records needs, beyond O(N) or O(n).

    For exchangeable records these are the types of the outputs, for every number of records.
    """
    return prior.space.n * prior.type_weights.size if isinstance(prior, Exchangeable) else 0
