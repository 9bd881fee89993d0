"""Mechanisms and priors as the command line takes them: names with parameters, and files."""

import numpy as np
import pytest

import fastpriv as fp
from command_line import done, prepare, refused
from fastpriv.cli import files as _files
from fastpriv.cli import mechanisms as _mechanisms
from fastpriv.cli.main import main


@pytest.fixture
def work(tmp_path, monkeypatch):
    return prepare(tmp_path, monkeypatch)


def mechanism(text, prior=None, sizes=None):
    return _mechanisms.load(text, prior, sizes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hamming:epsilon=1", fp.HammingChannel(1, 2, 1.0)),
        ("hamming:n=3,m=2,epsilon=1", fp.HammingChannel(3, 2, 1.0)),
        ("randomised-response:n=2,m=2,3,epsilon=0.5", fp.HammingChannel(2, [2, 3], 0.5)),
        ("binary-symmetric:p=0.1", fp.Channel([[0.9, 0.1], [0.1, 0.9]])),
        ("geometric-count:n=4,epsilon=0.7", fp.mechanisms.GeometricCount(4, 0.7).channel()),
        ("rows:kernel=bit.csv,n=2", fp.ProductChannel([[[0.75, 0.25], [0.25, 0.75]]] * 2)),
        ("bit.csv", fp.Channel([[0.75, 0.25], [0.25, 0.75]])),
        ("./bit.csv", fp.Channel([[0.75, 0.25], [0.25, 0.75]])),
    ],
)
def test_mechanisms_are_what_they_say(text, expected, work):
    found, prior = mechanism(text)
    assert prior is None
    assert found.space == expected.space
    np.testing.assert_array_equal(found.matrix(), expected.matrix())


def test_queries_on_counts(work):
    rows = fp.Space.hamming(3, 2).rows(np.arange(8))
    at_least_two = mechanism("binary-symmetric:p=0.1,n=3,at=2")[0].matrix()
    expected = np.where(rows.sum(axis=1) >= 2, 0.9, 0.1)
    np.testing.assert_allclose(at_least_two[:, 1], expected, atol=1e-15)
    ranked = mechanism("exponential:n=3,rate=0.5")[0].matrix()
    count = rows.sum(axis=1)
    kernel = fp.mechanisms.exponential(count, range(4), lambda a, b: abs(a - b), 0.5, [2] * 3)
    np.testing.assert_allclose(ranked, kernel.matrix(), atol=1e-15)
    (work / "kernel.csv").write_text("1,0\n0.5,0.5\n0,1\n")
    counted = mechanism("count:kernel=kernel.csv")[0]
    assert counted.space == fp.Space.hamming(2, 2)
    assert counted.matrix()[1].tolist() == [0.5, 0.5]


def test_e_i_takes_the_prior():
    channel, prior = mechanism("posterior:epsilon=2", "iid:p=0.6,0.4,n=3")
    assert isinstance(channel, fp.PosteriorChannel)
    assert channel.prior is prior
    assert fp.identifiability_level(channel, prior) == pytest.approx(2.0)


def test_e_i_for_a_prior_in_a_file(work):
    channel, prior = mechanism("posterior:epsilon=2", "prior.csv", [2, 2])
    assert channel.space == prior.space == fp.Space([2, 2])
    assert mechanism("posterior:epsilon=2", "prior.csv")[0].space == fp.Space([4])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform", fp.Uniform(3, 2)),
        ("uniform:n=3,m=2", fp.Uniform(3, 2)),
        ("iid:p=0.7,0.3", fp.Product.iid([0.7, 0.3], 3)),
        ("beta-binomial:a=0.5,b=0.8", fp.Exchangeable.beta_binomial(3, 0.5, 0.8)),
        (
            "markov:initial=0.5,0.5,transition=0.9,0.1,0.2,0.8",
            fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3),
        ),
    ],
)
def test_priors_take_what_they_leave_open_from_the_mechanism(text, expected):
    _, prior = mechanism("hamming:n=3,m=2,epsilon=1", text)
    assert type(prior) is type(expected)
    assert prior.space == expected.space
    np.testing.assert_array_equal(prior.pmf(), expected.pmf())


def test_priors_in_files(work):
    channel, prior = mechanism("channel.csv", "prior.csv")
    assert channel.space == prior.space == fp.Space([4])
    channel, prior = mechanism("channel.csv", "prior.csv", [2, 2])
    assert channel.space == prior.space == fp.Space([2, 2])
    channel, prior = mechanism("channel.csv", "marginals.csv")  # independent rows say their sizes
    assert channel.space == prior.space == fp.Space([2, 2])
    np.testing.assert_allclose(prior.pmf(), [0.18, 0.42, 0.12, 0.28])
    np.save("prior.npy", np.array([0.25, 0.75], dtype=np.float32))
    assert _mechanisms.prior_on("prior.npy", None).pmf().tolist() == [0.25, 0.75]


def test_files_are_read_back_exactly(work):
    matrix = np.random.default_rng(0).dirichlet(np.ones(5), 3)
    for suffix in _files.SUFFIXES:
        (work / f"w{suffix}").write_bytes(_files.encoded(matrix, suffix))
        np.testing.assert_array_equal(_files.read(f"w{suffix}", "the channel"), matrix)


def test_spreadsheets_are_read(work):
    (work / "excel.csv").write_bytes(b'\xef\xbb\xbf"0.5", 0.5\r\n\r\n1e0,0\r\n')
    found = _files.read("excel.csv", "the channel")
    assert found.tolist() == [[0.5, 0.5], [1.0, 0.0]]


@pytest.mark.parametrize("name", ["a,b.csv", "a b:c.csv", "BIT.CSV", "ä.csv"])
def test_names_of_files(name, work, capsys):
    (work / name).write_text("0.75,0.25\n0.25,0.75\n")
    assert "0.130812036" in done(["capacity", name], capsys)
    assert "0.392436108" in done(["capacity", f"rows:kernel={name},n=3"], capsys)


@pytest.mark.parametrize(
    "text", ["hamming: epsilon=1, n=3, m=2", "hamming:n=3, m=2, 2, 2,epsilon = 1"]
)
def test_spaces_do_not_matter(text):
    assert mechanism(text)[0].space == fp.Space([2, 2, 2])


@pytest.mark.parametrize("prior", ["uniform:n=2,m=2", "iid:p=0.5,0.5,n=2", "marginals.csv"])
def test_sizes_may_not_contradict_the_prior(prior, work, capsys):
    for words in (["solve", "dp", "--epsilon", "1"], ["capacity", "posterior:epsilon=2"]):
        words = [*words, "--prior", prior, "--sizes"]
        refused([*words, "2,3"], 2, "--sizes must fit the prior", capsys)
        done([*words, "2,2"], capsys)


def test_a_file_of_that_name_comes_first(work):
    (work / "hamming").write_text("1,0\n0,1\n")
    with pytest.raises(fp.InvalidInput, match=r"must be a \.csv"):
        mechanism("hamming")


def test_specs_name_the_channels_they_make():
    for text in ("hamming:n=3,m=2,epsilon=0.1", "hamming:n=1,m=4,epsilon=1.5"):
        assert _mechanisms.spec_of(mechanism(text)[0]) == text
    assert _mechanisms.spec_of(fp.Channel([[1.0]])) is None


def test_the_list_shows_every_name(capsys):
    with pytest.raises(SystemExit) as left:
        main(["capacity", "--list"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    for name in [*_mechanisms.MECHANISMS, *_mechanisms.PRIORS]:
        assert f"\n  {name}" in out
    assert "hamming:epsilon=X[,n=K][,m=K,K,...]" in out
    assert "_prior" not in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("haming:n=3", "there is no mechanism 'haming'; did you mean hamming?"),
        ("hamming", "hamming needs epsilon=..."),
        ("hamming:3", "must name its parameters"),
        ("hamming:epsilon=1,epsilon=2", "epsilon must be given once"),
        ("hamming:epsilom=1", "has no parameter 'epsilom'; did you mean epsilon?"),
        ("hamming:epsilon=", "epsilon of hamming must be numbers; got ''"),
        ("hamming:epsilon=1,2", "epsilon of hamming must be one value; got '1,2'"),
        ("hamming:epsilon=1,n=1.5", "n of hamming must be whole numbers; got '1.5'"),
        ("hamming:epsilon=nan", "epsilon must be a finite number"),
        ("hamming:epsilon=1,n=0", "n must be at least 1"),
        ("hamming:epsilon=1,n=2,m=2,3,4", "one for each of 2 rows; got 3"),
        ("posterior:epsilon=2", "posterior needs --prior"),
        ("posterior:epsilon=2,_prior=x", "has no parameter '_prior'"),
        ("posterior:epsilon=2,prior=x", "has no parameter 'prior'. It is written"),
        ("binary-symmetric:p=2", "p must be"),
        ("binary-symmetric:p=0.1,at=3", "at must be between 0 and n = 1; got 3"),
        ("exponential:n=3,rate=-1", "rate must be"),
        ("geometric-count:n=3,epsilon=0", "epsilon must be above 0"),
        ("count:kernel=none.csv", "cannot read the kernel none.csv: No such file"),
        ("rows:kernel=bit.csv,n=0", "n must be at least 1"),
        ("chanel.csv", "No such file or directory; did you mean channel.csv?"),
        ("none/channel.csv", "No such file"),
        ("notes.txt", "must be a .csv or .npy file"),
        ("folder.csv", "Is a directory"),
        ("header.csv", "line 1 of header.csv holds 'a', not a number. Is it a header?"),
        ("ragged.csv", "line 2 of ragged.csv has 1 numbers, but the first has 2"),
        ("empty.csv", "empty.csv must have a line of numbers"),
        ("nan.csv", "line 1 of nan.csv holds 'nan'"),
        ("semicolons.csv", "Separate numbers by commas"),
        ("text:nope.csv", "there is no mechanism 'text'"),
        ("trailing.csv", "holds '', nothing. Is there a comma at the end of the line?"),
        ("gap.csv", "line 1 of gap.csv holds '', nothing"),
        ("huge.csv", "line 1 of huge.csv holds '1e400', not a finite number"),
        ("signs.csv", "line 1 of signs.csv holds '75%', not a number. Write percentages as"),
        ("fractions.csv", "line 1 of fractions.csv holds '3/4', not a number"),
        ("dangling.csv", "cannot read the channel dangling.csv: No such file or directory"),
        ("percent.csv", "percent.csv: every row of matrix must"),
        ("rows:kernel=percent.csv", "percent.csv: "),
        ("count:kernel=percent.csv", "percent.csv: "),
        ("percent.csv", "sums to 100.0 (percentages? divide by 100)"),
        ("over.csv", "row 0 sums to 1.1"),
        ("negative.csv", "at least 0; got -0.5"),
        ("latin.csv", "it is not UTF-8 text"),
        ("text.npy", "it is not an array that numpy saved"),
        ("a\0b.csv", "cannot read"),
    ],
)  # fmt: skip
def test_wrong_mechanisms_are_refused(text, says, work, capsys):
    (work / "trailing.csv").write_text("0.5,0.5,\n0.5,0.5,\n")
    (work / "gap.csv").write_text("0.5,,0.5\n")
    (work / "huge.csv").write_text("1e400,0\n")
    (work / "signs.csv").write_text("75%,25%\n")
    (work / "fractions.csv").write_text("3/4,1/4\n")
    (work / "dangling.csv").symlink_to("nowhere.csv")
    refused(["capacity", text], 2, says, capsys)


@pytest.mark.parametrize(
    "text",
    [
        "hamming:n=100000000000,epsilon=1",
        "binary-symmetric:p=0.1,n=100000000000",
        "exponential:n=100000000,rate=1",
        "geometric-count:n=100000000,epsilon=1",
        "rows:kernel=bit.csv,n=100000000000",
    ],
)
def test_mechanisms_that_are_too_large(text, work, capsys):
    refused(["capacity", text], 4, "entries", capsys)


@pytest.mark.parametrize("text", ["uniform:m=2", "iid:p=0.5,0.5", "beta-binomial:a=1,b=1"])
def test_priors_that_are_too_large(text, work, capsys):
    words = ["solve", "dp", "--epsilon", "1", "--prior", f"{text},n=100000000000"]
    refused(words, 4, "entries", capsys)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("unifrom:n=2,m=2", "there is no prior 'unifrom'; did you mean uniform?"),
        ("uniform", "uniform needs n=..."),
        ("iid:p=0.7,0.2,n=2", "must sum to 1 within 1e-09; got a sum of 0.8999999999999999"),
        ("iid:n=2", "iid needs p=..."),
        ("beta-binomial:a=0,b=1,n=2", "a and b must be above 0"),
        ("markov:initial=0.5,0.5,transition=1,0,n=2", "must be 4 probabilities"),
        ("markov:initial=0.5,0.5,transition=1,0,1,1,n=2", "row 1 sums to 2.0"),
        ("prior.cvs", "must be a .csv or .npy file"),
        ("priors.csv", "No such file or directory; did you mean prior.csv?"),
        ("over.csv", "sum to 1"),
        ("over.csv", "over.csv: "),
        ("empty.csv", "empty.csv must have a line of numbers"),
    ],
)
def test_wrong_priors_are_refused(text, says, work, capsys):
    refused(["solve", "dp", "--epsilon", "1", "--prior", text, "--out", "o.csv"], 2, says, capsys)


@pytest.mark.parametrize(
    ("channel", "prior", "sizes", "says"),
    [
        ("bit.csv", "prior.csv", None, "must have a probability for each of 2 databases; got 4"),
        ("channel.csv", "prior.csv", [2, 3], "each of 6 databases; got 4"),
        ("hamming:n=4,m=4,epsilon=1", "prior.csv", None, "iid:p=0.4,0.3,0.2,0.1"),
        ("hamming:n=2,m=2,epsilon=1", None, [2, 2], "--sizes must be left out"),
    ],
)
def test_mechanism_and_prior_must_fit(channel, prior, sizes, says, work):
    with pytest.raises(fp.InvalidInput, match=says):
        mechanism(channel, prior, sizes)


@pytest.mark.parametrize("text", ["2,", "a", "2.5", ""])
def test_wrong_sizes_are_refused(text, work, capsys):
    says = "must be a list of numbers of values"
    refused(["capacity", "channel.csv", f"--sizes={text}"], 2, says, capsys)


def test_sizes_that_do_not_fit_are_refused(work, capsys):
    words = ["capacity", "channel.csv", "--sizes"]
    refused([*words, "2,3"], 2, "has 6 databases but the matrix has 4 rows", capsys)
    refused([*words, "0,4"], 2, "at least 1", capsys)


def test_usage_puts_brackets_around_what_may_be_left_out():
    assert _mechanisms.usage(_mechanisms.PRIORS)["iid"] == "iid:p=X,X,...,n=K"
    assert _mechanisms.usage(_mechanisms.MECHANISMS)["rows"] == "rows:kernel=FILE[,n=K]"


@pytest.mark.parametrize(
    ("text", "channel"),
    [
        ("subset:k=20,epsilon=1", fp.SubsetChannel(20, 1.0)),
        ("subset:k=20,epsilon=1,size=2", fp.SubsetChannel(20, 1.0, 2)),
        ("unary:k=9,epsilon=1", fp.UnaryChannel(9, 1.0)),
        ("symmetric-unary:k=9,epsilon=1", fp.UnaryChannel(9, 1.0, "symmetric")),
        ("hashing:k=100,epsilon=2,g=5", fp.HashingChannel(100, 2.0, 5)),
        ("hadamard:k=100,epsilon=2", fp.HadamardChannel(100, 2.0)),
        ("projective:k=100,epsilon=2,q=3", fp.ProjectiveChannel(100, 2.0, 3)),
    ],
)
def test_local_mechanisms_have_names(text, channel):
    assert mechanism(text)[0] == channel
