"""Mechanisms and priors as commands take them: a file, or a name with parameters.

A name such as ``hamming:n=3,m=2,epsilon=1`` stands for a plain function. Its signature has the
parameters and their types, and ``--list`` shows its docstring. A value may be a list,
``p=0.7,0.2,0.1``.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastpriv.cli import files
from fastpriv.cli.parser import add_file
from fastpriv.errors import InvalidInput, described, did_you_mean, hint_or_list, short

if TYPE_CHECKING:
    from fastpriv._core.validation import Ints as Array
    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution
    from fastpriv.spaces import Space

Makers = Mapping[str, Callable[..., Any]]
# Types of parameters, by the names that signatures give them.
Ints = Sequence[int]
Floats = Sequence[float]


def parts(spec: str) -> tuple[str, dict[str, list[str]]]:
    """Split a spec into its name and the words of each parameter."""
    name, _, rest = spec.partition(":")
    given: dict[str, list[str]] = {}
    words: list[str] | None = None
    for piece in rest.split(",") if rest else []:
        key, equals, value = (part.strip() for part in piece.partition("="))
        if equals:
            if key in given:
                raise InvalidInput(f"{key} must be given once; got {described(spec)}.")
            words = given[key] = [value]
        elif words is None:
            raise InvalidInput(f"{described(spec)} must name its parameters, such as {name}:n=3.")
        else:
            words.append(piece.strip())
    return name, given


def make(spec: str, makers: Makers, what: str, known: Mapping[str, Any]) -> Any:
    """Call the function a spec names; ``known`` fills parameters that it leaves out."""
    name = spec.partition(":")[0]
    if name not in makers:
        raise InvalidInput(
            f"there is no {what} {described(name)}"
            f"{hint_or_list(name, makers, 'a .csv or .npy file or ')}"
        )
    _, given = parts(spec)
    parameters = inspect.signature(makers[name]).parameters
    public = [key for key in parameters if not key.startswith("_")]
    for key in given:
        if key not in public:
            hint = did_you_mean(key, public) or "."
            raise InvalidInput(
                f"{name} has no parameter {described(key)}{hint} It is written "
                f"{usage(makers)[name]}"
            )
    values = {
        key: _value(given[key], str(p.annotation), f"{key} of {name}")
        for key, p in parameters.items()
        if key in given
    }
    for key, parameter in parameters.items():
        if key not in values and key in known:
            values[key] = known[key]
        if key not in values and parameter.default is inspect.Parameter.empty:
            missing = f"--{key[1:]}" if key.startswith("_") else f"{key}=..."
            raise InvalidInput(f"{name} needs {missing}; it is written {usage(makers)[name]}")
    return makers[name](**values)


def _value(words: list[str], kind: str, name: str) -> Any:
    """Return the words of one parameter as the type of its annotation."""
    if kind == "str":
        return ",".join(words)  # names of files may have commas
    read, many = _KINDS[kind]
    try:
        values = [read(word) for word in words]
    except ValueError:
        expected = "whole numbers" if read is int else "numbers"
        raise InvalidInput(
            f"{name} must be {expected}; got {described(','.join(words))}."
        ) from None
    if many:
        return values
    if len(values) != 1:
        raise InvalidInput(f"{name} must be one value; got {described(','.join(words))}.")
    return values[0]


_KINDS: Mapping[str, tuple[Callable[[str], Any], bool]] = {
    "int": (int, False),
    "float": (float, False),
    "Ints": (int, True),
    "Floats": (float, True),
}


def usage(makers: Makers) -> dict[str, str]:
    """Return for every name how a spec is written, optional parameters in brackets."""
    usages = {}
    for name, maker in makers.items():
        text = ""
        for key, parameter in inspect.signature(maker).parameters.items():
            if key.startswith("_"):
                continue
            word = f"{key}={_SHAPES[str(parameter.annotation)]}"
            needed = parameter.default is inspect.Parameter.empty
            text += f",{word}" if needed else f"[,{word}]"
        usages[name] = name + (":" + text.lstrip(",") if text else "")
    return usages


_SHAPES = {"int": "K", "float": "X", "str": "FILE", "Ints": "K,K,...", "Floats": "X,X,..."}


def listed(makers: Makers) -> str:
    """Return every name with its parameters and its meaning."""
    return "\n".join(
        f"  {text}\n      {inspect.getdoc(makers[name])}" for name, text in usage(makers).items()
    )


def uniform(n: int, m: Ints) -> Distribution:
    """All databases are equally likely: n records of m values each (or m=2,3,... one for each)."""
    from fastpriv.priors import Uniform

    return Uniform(n, m if len(m) > 1 else m[0])


def iid(p: Floats, n: int) -> Distribution:
    """Records are independent, each with distribution p."""
    from fastpriv.priors import Product

    return Product.iid(p, n)


def beta_binomial(a: float, b: float, n: int) -> Distribution:
    """Records are bits, independent given a common probability of 1 that is Beta(a, b)."""
    from fastpriv.priors import Exchangeable

    return Exchangeable.beta_binomial(n, a, b)


def markov(initial: Floats, transition: Floats, n: int) -> Distribution:
    """Records form a chain; transition lists P(next | this), row by row."""
    from fastpriv.priors import Markov

    m = len(initial)
    if len(transition) != m * m:
        raise InvalidInput(
            f"transition of markov must be {m * m} probabilities, for {m} values; got "
            f"{len(transition)}."
        )
    return Markov(initial, [transition[i : i + m] for i in range(0, m * m, m)], n)


PRIORS: Makers = {
    "uniform": uniform,
    "iid": iid,
    "beta-binomial": beta_binomial,
    "markov": markov,
}

_PRIOR_FILES = """\
  FILE.csv or FILE.npy
      One line (or one column): the probability of every database, the last record changing fastest.
      Several lines: the distribution of each record; records are independent."""


def prior_on(text: str, space: Space | None) -> Distribution:
    """Return the prior; parameters left out are taken from the mechanism's space, if known."""
    if files.is_file(text):
        return _prior_from_file(text, space)
    known = {} if space is None else {"n": space.n, "m": list(space.sizes)}
    prior: Distribution = make(text, PRIORS, "prior", known)
    return prior


def _prior_from_file(path: str, space: Space | None) -> Distribution:
    table = files.read(path, "the prior")
    from fastpriv.priors import Dense, Product

    if 1 not in table.shape:
        with files.named_errors(path):
            return Product(list(table))
    masses = table.reshape(-1)
    if space is not None and space.size != len(masses):
        hint = ""
        if space.n > 1 and space.m == len(masses):
            words = ",".join(map(repr, masses.tolist()))
            hint = f" For independent records of this distribution write iid:p={words}."
        raise InvalidInput(
            f"the prior {path} must have a probability for each of {short(space.size)} databases; "
            f"got {len(masses)}.{hint}"
        )
    with files.named_errors(path):
        return Dense(masses, None if space is None else space.sizes)


def subset(k: int, epsilon: float, size: int = 0) -> AbstractChannel:
    """Subset selection: the message is a set of size (0: the best) of k values."""
    from fastpriv.channels import SubsetChannel

    return SubsetChannel(k, epsilon, size or None)


def unary(k: int, epsilon: float) -> AbstractChannel:
    """Optimised unary encoding: the message is k bits, the true one 1 with probability 1/2."""
    from fastpriv.channels import UnaryChannel

    return UnaryChannel(k, epsilon)


def symmetric_unary(k: int, epsilon: float) -> AbstractChannel:
    """Symmetric unary encoding, as in RAPPOR: all of k bits are flipped with one probability."""
    from fastpriv.channels import UnaryChannel

    return UnaryChannel(k, epsilon, "symmetric")


def hashing(k: int, epsilon: float, g: int = 0) -> AbstractChannel:
    """Local hashing: a random hash function to g (a prime; 0: the best) values, noisy."""
    from fastpriv.channels import HashingChannel

    return HashingChannel(k, epsilon, g or None)


def hadamard(k: int, epsilon: float, blocks: int = 0) -> AbstractChannel:
    """Hadamard response on blocks (a power of two; 0: the best) of the k values."""
    from fastpriv.channels import HadamardChannel

    return HadamardChannel(k, epsilon, blocks or None)


def projective(k: int, epsilon: float, q: int = 0) -> AbstractChannel:
    """Projective geometry response over the field of q (a prime; 0: the best) elements."""
    from fastpriv.channels import ProjectiveChannel

    return ProjectiveChannel(k, epsilon, q or None)


def hamming(epsilon: float, n: int = 1, m: Ints = (2,)) -> AbstractChannel:
    """Randomised response (E_d) on each of n records (1) of m values (2; or one m for each)."""
    from fastpriv.channels import HammingChannel

    return HammingChannel(n, m if len(m) > 1 else m[0], epsilon)


def posterior(epsilon: float, _prior: Distribution) -> AbstractChannel:
    """E_i for the prior given with --prior: the posterior is a randomised response."""
    from fastpriv.channels import PosteriorChannel

    return PosteriorChannel(_prior, epsilon)


def binary_symmetric(p: float, n: int = 1, at: int = 1) -> AbstractChannel:
    """Whether at least ``at`` (1) of n bits (1) are set, flipped with probability p."""
    import numpy as np

    from fastpriv._core import validation as check
    from fastpriv.channels import QueryChannel

    flip = check.real(p, "p", 0.0, 1.0)
    counts = _counts(n, 2)
    if not 0 <= at <= n:
        raise InvalidInput(f"at must be between 0 and n = {n}; got {at}.")
    no, yes = [1.0 - flip, flip], [flip, 1.0 - flip]
    return QueryChannel.count(n, np.where(counts[:, None] >= at, yes, no))


def exponential(rate: float, n: int) -> AbstractChannel:
    """The number of set bits among n; probabilities fall by e^-rate with the rank of closeness."""
    import numpy as np

    from fastpriv.channels import QueryChannel
    from fastpriv.mechanisms.exponential import exponential as ranked

    counts = _counts(n, n + 1)
    kernel = ranked(counts, counts, np.abs(counts[:, None] - counts), rate, [len(counts)])
    return QueryChannel.count(n, kernel.matrix())


def _counts(n: int, outputs: int) -> Array:
    """Return the counts of n bits, if a kernel with so many outputs is to be formed."""
    import numpy as np

    from fastpriv._core import validation as check

    records = check.integer(n, "n", 1)
    check.fits((records + 1) * outputs, "the kernel", "use fewer records", check.MAX_MATRIX)
    return np.arange(records + 1)


def geometric_count(epsilon: float, n: int) -> AbstractChannel:
    """The number of set bits among n with two-sided geometric noise, clamped to 0 .. n."""
    from fastpriv.mechanisms.counting import GeometricCount

    return GeometricCount(n, epsilon).channel()


def count(kernel: str) -> AbstractChannel:
    """The number of set bits: line c of the kernel is the output distribution if c are set."""
    table = files.read(kernel, "the kernel")
    from fastpriv.channels import QueryChannel

    with files.named_errors(kernel):
        return QueryChannel.count(len(table) - 1, table)


def rows(kernel: str, n: int = 1) -> AbstractChannel:
    """The same channel matrix on each of n records (1) separately."""
    table = files.read(kernel, "the kernel")
    from fastpriv._core import validation as check
    from fastpriv.channels import ProductChannel

    number = check.integer(n, "n", 1)
    check.fits(number, "a database", "use fewer records")
    with files.named_errors(kernel):
        return ProductChannel([table] * number)


MECHANISMS: Makers = {
    "hamming": hamming,
    "randomised-response": hamming,
    "posterior": posterior,
    "binary-symmetric": binary_symmetric,
    "exponential": exponential,
    "geometric-count": geometric_count,
    "count": count,
    "rows": rows,
    "subset": subset,
    "unary": unary,
    "symmetric-unary": symmetric_unary,
    "hashing": hashing,
    "hadamard": hadamard,
    "projective": projective,
}


def load(
    mechanism: str, prior: str | None, sizes: list[int] | None
) -> tuple[AbstractChannel, Distribution | None]:
    """Return the mechanism, and the prior if one is given."""
    space = _space(sizes)
    if files.is_file(mechanism):
        return _from_file(mechanism, prior, space)
    if prior is not None and has_sizes(mechanism):
        law = load_prior(prior, sizes)
        return make(mechanism, MECHANISMS, "mechanism", {"_prior": law}), law
    if sizes is not None:
        raise InvalidInput(
            f"--sizes must be left out, because {mechanism} fixes its records. It is for files."
        )
    channel: AbstractChannel = make(mechanism, MECHANISMS, "mechanism", {})
    return channel, None if prior is None else prior_on(prior, channel.space)


def has_sizes(mechanism: str) -> bool:
    """Whether ``--sizes`` applies to a mechanism: to a matrix, or to one made from a prior."""
    return files.is_file(mechanism) or mechanism.partition(":")[0] == "posterior"


def _from_file(
    path: str, prior: str | None, space: Space | None
) -> tuple[AbstractChannel, Distribution | None]:
    matrix = files.read(path, "the channel")
    from fastpriv.channels import Channel  # compiled code, which errors about files need not load

    law = None if prior is None else prior_on(prior, space or _space([len(matrix)]))
    with files.named_errors(path):
        return Channel(matrix, space or (None if law is None else law.space)), law


def load_prior(prior: str, sizes: list[int] | None) -> Distribution:
    """Return a prior that is given without a mechanism."""
    law = prior_on(prior, _space(sizes))
    if sizes is not None and law.space != _space(sizes):
        words = ",".join(map(str, sizes))
        raise InvalidInput(f"--sizes must fit the prior {prior}, on {law.space!r}; got {words}.")
    return law


def spec_of(channel: AbstractChannel) -> str | None:
    """Return the text that names a channel, where there is one."""
    from fastpriv.channels import HammingChannel, PosteriorChannel

    if isinstance(channel, PosteriorChannel):
        return f"posterior:epsilon={channel.epsilon!r}"
    if isinstance(channel, HammingChannel) and channel.space.m is not None:
        return f"hamming:n={channel.space.n},m={channel.space.m},epsilon={channel.epsilon!r}"
    return None


def _space(sizes: list[int] | None) -> Space | None:
    if sizes is None:
        return None
    from fastpriv.spaces import Space

    return Space(sizes)


# Options.


def sizes_of(text: str) -> list[int]:
    """Return the numbers of values that ``--sizes`` lists."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{described(text)} must be a list of numbers of values, such as 2,2,3"
        ) from None


def add_mechanism(parser: Any, name: str, **options: Any) -> None:
    """Declare an argument that is a mechanism."""
    add_file(
        parser,
        name,
        metavar=name.upper(),
        help="a .csv or .npy file with p(y|x), one line for each database x (- for CSV from a "
        "pipe); or a name with parameters, such as hamming:n=3,m=2,epsilon=1 (--list shows all)",
        **options,
    )


def add_prior(parser: Any, required: bool = False) -> None:
    """Declare ``--prior``, and with it ``--sizes`` and ``--list``."""
    add_file(
        parser,
        "--prior",
        required=required,
        help="distribution of the databases: a file, or such as uniform, iid:p=0.7,0.3,n=3 or "
        "beta-binomial:a=0.5,b=0.8,n=20 (--list shows all)",
    )
    parser.add_argument(
        "--sizes",
        type=sizes_of,
        metavar="K,K,...",
        help="number of values of each record of the databases, for files (default: one record)",
    )
    parser.add_argument("--list", action=_List, help="list mechanisms and priors, and leave")


class _List(argparse.Action):
    def __init__(self, option_strings: Any, dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        print(
            f"mechanisms:\n{_MATRIX_FILES}\n{listed(MECHANISMS)}\n\n"
            f"priors:\n{_PRIOR_FILES}\n{listed(PRIORS)}"
        )
        parser.exit()


_MATRIX_FILES = """\
  FILE.csv or FILE.npy
      The matrix p(y|x): a line for each database x, the last record of x changing fastest."""
