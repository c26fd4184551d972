"""Philox against its published known answers (Random123, kat_vectors), its bookkeeping, and what
distributions make of its words, against Python's numbers.
"""

from math import cos, erf, exp, log, pi, sin, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from gtape.core.dtypes import as_dtype
from gtape.numerics import distributions

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
KNOWN = [
    ((0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF, 0xFFFFFFFF), 2**128 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0xA4093822, 0x299F31D0),
        sum(word << 32 * lane for lane, word in enumerate(PI)),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize("key, counter, expected", KNOWN)
def test_known_answers(key, counter, expected):
    result = distributions.words(np, key, counter, 4)
    assert result.dtype == np.uint32
    assert " ".join(f"{word:08x}" for word in result) == expected


def test_a_stream_is_its_counters_in_order():
    whole = distributions.words(np, (1, 2), 10, 4 * 5)
    parts = [distributions.words(np, (1, 2), 10 + i, 4) for i in range(5)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(distributions.words(np, (1, 2), 10, 7), whole[:7])
    assert distributions.words(np, (1, 2), 10, 0).size == 0


def test_counters_carry_into_the_high_half():
    start = 2**64 - 2
    whole = distributions.words(np, (1, 2), start, 16)
    parts = [distributions.words(np, (1, 2), start + i, 4) for i in range(4)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_pieces_agree_with_one_piece(monkeypatch):
    whole = distributions.words(np, (5, 6), 3, 1000)
    monkeypatch.setattr(distributions, "HOST_COUNTERS", 7)
    np.testing.assert_array_equal(distributions.words(np, (5, 6), 3, 1000), whole)


def test_chosen_counters():
    counters = np.array([9, 2, 9], np.uint64)
    lanes = distributions.counter_words(np, (1, 2), counters, 1)
    np.testing.assert_array_equal(lanes[1], distributions.words(np, (1, 2), 2**64 + 2, 4))
    np.testing.assert_array_equal(lanes[0], lanes[2])


KEY = (0x243F6A88, 0x85A308D3)
#: A counter whose lower half overflows within the draw.
OFFSET = 7 << 64 | 0xFFFFFFFFFFFFFFFA
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
EPS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-13}


def scrambled(counter):
    """Philox4x32-10 in Python's integers."""
    a, b, c, d = (counter >> 32 * i & 0xFFFFFFFF for i in range(4))
    for turn in range(10):
        k0, k1 = (KEY[0] + turn * 0x9E3779B9) % 2**32, (KEY[1] + turn * 0xBB67AE85) % 2**32
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b = (second >> 32) ^ b ^ k0, second % 2**32
        c, d = (first >> 32) ^ d ^ k1, first % 2**32
    return [a, b, c, d]


def words(count):
    return [w for i in range(-(-count // 4)) for w in scrambled((OFFSET + i) % 2**128)][:count]


def pairs(count):
    drawn = words(2 * count)
    return list(zip(drawn[0::2], drawn[1::2], strict=True))


def fractions(count, bits):
    if bits <= 23:
        return [w % 2**bits / 2**bits for w in words(count)]
    return [((a % 2**20 << 32) + b) / 2**52 for a, b in pairs(count)]


def test_words_are_those_of_python_s_integers():
    assert distributions.words(np, KEY, OFFSET, 1001).tolist() == words(1001)


@pytest.mark.parametrize("name", MANTISSA)
def test_floats_are_made_of_the_words(name):
    dtype, count = np.dtype(as_dtype(name).as_numpy_dtype), 501
    given = np, KEY, OFFSET, (count,), dtype
    unit = fractions(count, MANTISSA[name])
    np.testing.assert_array_equal(distributions.uniform(*given).astype(float), unit)
    shifted = distributions.uniform(*given, -1.5, 2.25).astype(float)
    np.testing.assert_allclose(shifted, [3.75 * u - 1.5 for u in unit], rtol=0,
                               atol=4 * EPS[name])
    assert shifted.max() < 2.25
    unit = fractions(count + 1, max(MANTISSA[name], 23))
    radii = [sqrt(-2 * log(max(u, 1e-7))) for u in unit[0::2]]
    turned = [f(2 * pi * v) for v in unit[1::2] for f in (sin, cos)]
    normal = [radii[i // 2] * turn for i, turn in enumerate(turned)][:count]
    np.testing.assert_allclose(distributions.normal(*given).astype(float), normal, rtol=0,
                               atol=8 * EPS[name])
    if name == "float64":
        open_unit = [((b << 32 | a) >> 12) + 0.5 for a, b in pairs(2 * count)[1::2]]
        open_unit = [v / 2**52 for v in open_unit]
    else:
        open_unit = [((w >> 9) + 0.5) / 2**23 for w in words(2 * count)[1::2]]
    inside = [NormalDist().inv_cdf(0.5 + (v - 0.5) * erf(sqrt(2))) for v in open_unit]
    np.testing.assert_allclose(distributions.truncated_normal(*given).astype(float), inside,
                               rtol=0, atol=4 * max(EPS[name], 1e-12))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_are_remainders_of_the_words(dtype):
    info, raw = np.iinfo(dtype), [b << 32 | a for a, b in pairs(101)]
    for low, high in ((int(info.min), int(info.max) + 1), (0, 1), (int(info.min), 77), (3, 67)):
        drawn = distributions.uniform_int(np, KEY, OFFSET, (101,), dtype, low, high)
        assert drawn.tolist() == [low + r % (high - low) for r in raw]


def test_truth_values_and_classes_are_made_of_the_words():
    mask = distributions.bernoulli(np, KEY, OFFSET, (501,), 0.3)
    assert mask.tolist() == [u >= round(0.7 * 2**23) / 2**23 for u in fractions(501, 23)]
    logits = np.random.default_rng(0).normal(size=(3, 33))
    logits[:, [0, -1]] = -np.inf
    drawn = distributions.categorical(np, KEY, OFFSET, logits, 31)
    unit = np.reshape(fractions(3 * 31, 52), (3, 31))
    for row, targets, numbers in zip(logits, unit, drawn, strict=True):
        shares = np.array([exp(x) for x in row]) / sum(exp(x) for x in row)
        expected = [next(k for k, edge in enumerate(np.cumsum(shares)) if edge > u)
                    for u in targets]
        assert numbers.tolist() == expected
