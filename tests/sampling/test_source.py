"""Samplers: where their random bits come from."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._sampling import source as _random
from fastpriv._sampling.source import Keyed
from fastpriv.errors import InvalidInput


def test_which_sources_are_secure():
    assert _random.is_secure(None)
    assert not _random.is_secure(3)
    assert not _random.is_secure(np.random.default_rng())
    with pytest.raises(InvalidInput, match="rng"):
        _random.is_secure("dice")


def test_seeded_words_are_the_generator_s():
    words = _random.source(7).words(5)
    assert np.array_equal(words, np.random.default_rng(7).integers(0, 2**64, 5, dtype=np.uint64))


def test_words_of_all_threads_differ():
    found = []

    def collect():
        source = _random.source(None)
        found.extend(source.words(k).tobytes() for k in (8, 8, 100))

    threads = [threading.Thread(target=collect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.frombuffer(b"".join(found), dtype=np.uint64)
    assert len(np.unique(words)) == len(words) == 8 * 116


@pytest.mark.slow
def test_new_keys_and_long_requests(monkeypatch):
    renewed = []
    plain = _random._Keystream._renew
    monkeypatch.setattr(_random, "_PER_KEY", 1000)
    monkeypatch.setattr(
        _random._Keystream, "_renew", lambda self: (renewed.append(1), plain(self))[1]
    )
    monkeypatch.setattr(_random._Secure, "_mine", _random._Threads())
    words = np.concatenate([_random.source(None).words(k) for k in (0, 1, 130, 1000)])
    assert len(renewed) == -(-8 * 1131 // 1000)
    assert len(np.unique(words)) == 1131
    monkeypatch.undo()
    words = _random.source(None).words(1 << 19)  # more than is made at a time
    assert len(np.unique(words)) == 1 << 19
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 6 * 0.5 / math.sqrt(1 << 19)


def test_a_fork_behind_our_back_is_noticed(monkeypatch):
    monkeypatch.setattr(_random._Secure, "_mine", _random._Threads())
    _random.source(None).words(1)
    parent = _random._Secure._mine.stream
    _random.source(None).words(1)
    assert _random._Secure._mine.stream is parent
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    _random.source(None).words(1)
    assert _random._Secure._mine.stream is not parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_words_of_forked_children_differ():
    code = """
import os
import numpy as np
from fastpriv._sampling import source as _random
source = _random.source(None)
source.words(3)
blocks = []
for _ in range(3):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, source.words(64).tobytes())
        os._exit(0)
    blocks.append(os.read(read, 512))
    os.wait()
blocks.append(source.words(64).tobytes())
words = np.frombuffer(b"".join(blocks), dtype=np.uint64)
print(len(words), len(np.unique(words)))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["256", "256"]


@pytest.mark.slow
def test_drawing_loads_the_cipher_and_importing_does_not():
    code = """
import sys, fastpriv as fp
channel = fp.HammingChannel(2, 2, 1.0)
channel.sample([[0, 1]], rng=1)
print("cryptography" in sys.modules)
channel.sample([[0, 1]])
print("cryptography" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]


def test_keyed_words_are_aes_in_counter_mode():
    """Against blocks encrypted one by one: a key and a counter determine every word."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = bytes(range(48))
    ours = Keyed(key, True)
    words = np.concatenate([ours.words(count) for count in (4, 0, 2, 10)])
    cipher = Cipher(algorithms.AES256(key[:32]), modes.ECB()).encryptor()
    start = int.from_bytes(key[32:], "big")
    blocks = b"".join(cipher.update((start + k).to_bytes(16, "big")) for k in range(8))
    assert words.tolist() == np.frombuffer(blocks, np.uint64).tolist()
    long = Keyed(key, True).words((1 << 17) + 5)  # over the zeros that are encrypted at a time
    assert long[:16].tolist() == words.tolist()
    assert np.unique(long).size == long.size


def test_keyed_draws_do_not_depend_on_threads(monkeypatch):
    channel = fp.HammingChannel(2, [3, 5], 0.7)
    rows = np.tile([[0, 4], [2, 1]], (300_000, 1))
    first = channel.sample(rows, Keyed(bytes(48), True))
    monkeypatch.setattr("fastpriv._core.threads.workers", lambda: 1)
    assert np.array_equal(first, channel.sample(rows, Keyed(bytes(48), True)))
