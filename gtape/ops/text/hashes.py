"""Hash functions of strings: SipHash-2-4, which a key makes unpredictable, and a fast one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtape.ops.text.words import Words, at, mixed, of_strings, rotated, word

#: "somepseudorandomlygeneratedbytes": the state before the key, Aumasson and Bernstein 2012.
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_SEED = 0xDECAFCAFFE
_MULTIPLIER = word(0xC6A4A7935BD1E995)


def _rounds(v: list[Words], count: int) -> None:
    for _ in range(count):
        v[0] = v[0] + v[1]
        v[1] = rotated(v[1], 64 - 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] = v[2] + v[3]
        v[3] = rotated(v[3], 64 - 16) ^ v[2]
        v[0] = v[0] + v[3]
        v[3] = rotated(v[3], 64 - 21) ^ v[0]
        v[2] = v[2] + v[1]
        v[1] = rotated(v[1], 64 - 17) ^ v[2]
        v[2] = rotated(v[2], 32)


def _tail(rows: np.ndarray) -> Words:
    """The bytes after the last whole word, as a number."""
    made = np.zeros(len(rows), np.uint64)
    whole = rows.shape[1] // 8 * 8
    for i in range(whole, rows.shape[1]):
        made |= at(rows, i, "u1") << np.uint64(8 * (i - whole))
    return made


def strong_hashes(strings: Sequence[bytes], key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each string under a key of two words, as uint64."""
    low, high = key
    start = [word(s ^ k) for s, k in zip(_START, (low, high, low, high))]

    def of_rows(rows: np.ndarray) -> Words:
        size = rows.shape[1]
        v: list[Words] = [np.full(len(rows), s) for s in start]
        last = _tail(rows) | np.uint64((size & 0xFF) << 56)
        for part in [*(at(rows, i) for i in range(0, size // 8 * 8, 8)), last]:
            v[3] = v[3] ^ part
            _rounds(v, 2)
            v[0] = v[0] ^ part
        v[2] = v[2] ^ np.uint64(0xFF)
        _rounds(v, 4)
        return v[0] ^ v[1] ^ v[2] ^ v[3]

    return of_strings(strings, of_rows)


def quick_hashes(strings: Sequence[bytes]) -> Words:
    """MurmurHash64A of each string under TensorFlow's seed, as uint64."""
    def of_rows(rows: np.ndarray) -> Words:
        size = rows.shape[1]
        found = np.full(len(rows), word(_SEED ^ (size * int(_MULTIPLIER))))
        for i in range(0, size // 8 * 8, 8):
            part = mixed(at(rows, i) * _MULTIPLIER) * _MULTIPLIER
            found = (found ^ part) * _MULTIPLIER
        if size % 8:
            found = (found ^ _tail(rows)) * _MULTIPLIER
        return mixed(mixed(found) * _MULTIPLIER)

    return of_strings(strings, of_rows)
