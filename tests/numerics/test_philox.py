"""Philox against its published known answers (Random123, kat_vectors), and its bookkeeping."""

import numpy as np
import pytest

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
