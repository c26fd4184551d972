"""FarmHash's Fingerprint64 of strings: the same number on every machine, in every version.

Geoff Pike, "FarmHash", 2014 (github.com/google/farmhash): the function for 64-bit machines without
special instructions, whose values are promised never to change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtape.ops.text.words import Words, at, mixed, of_strings, rotated, word

_K0 = word(0xC3A5C85C97CB3127)
_K1 = word(0xB492B66FBE98F273)
_K2 = word(0x9AE16A3B2F90404F)


def fingerprints(strings: Sequence[bytes]) -> Words:
    """The fingerprint of each string, as uint64."""
    return of_strings(strings, _of_rows)


def fingerprint64(string: bytes) -> int:
    """The fingerprint of one string."""
    return int(fingerprints([string])[0])


def _of_rows(rows: np.ndarray) -> Words:
    size = rows.shape[1]
    if size <= 16:
        return _to_16(rows)
    if size <= 32:
        return _to_32(rows)
    if size <= 64:
        return _to_64(rows)
    return _longer(rows)


def _joined(u: Words, v: Words, by: Words | np.uint64) -> Words:
    """One word of two."""
    a = mixed((u ^ v) * by)
    return mixed((v ^ a) * by) * by


def _to_16(rows: np.ndarray) -> Words:
    size = rows.shape[1]
    by = word(int(_K2) + 2 * size)
    if size >= 8:
        a, b = at(rows, 0) + _K2, at(rows, size - 8)
        return _joined(rotated(b, 37) * by + a, (rotated(a, 25) + b) * by, by)
    if size >= 4:
        a, b = at(rows, 0, "<u4"), at(rows, size - 4, "<u4")
        return _joined(np.uint64(size) + (a << np.uint64(3)), b, by)
    if size:
        y = at(rows, 0, "u1") + (at(rows, size >> 1, "u1") << np.uint64(8))
        z = np.uint64(size) + (at(rows, size - 1, "u1") << np.uint64(2))
        return mixed(y * _K2 ^ z * _K0) * _K2
    return np.full(len(rows), _K2)


def _ends(rows: np.ndarray, by: np.uint64, first: np.uint64) -> tuple[Words, Words, Words]:
    """Two words of the first and last 16 bytes, and the first of the bytes multiplied."""
    size = rows.shape[1]
    a, b = at(rows, 0) * first, at(rows, 8)
    c, d = at(rows, size - 8) * by, at(rows, size - 16) * _K2
    return (rotated(a + b, 43) + rotated(c, 30) + d, a + rotated(b + _K2, 18) + c, a)


def _to_32(rows: np.ndarray) -> Words:
    by = word(int(_K2) + 2 * rows.shape[1])
    u, v, _ = _ends(rows, by, _K1)
    return _joined(u, v, by)


def _to_64(rows: np.ndarray) -> Words:
    size = rows.shape[1]
    by = word(int(_K2) + 2 * size)
    y, v, a = _ends(rows, by, _K2)
    z = _joined(y, v, by)
    e, f = at(rows, 16) * by, at(rows, 24)
    g, h = (y + at(rows, size - 32)) * by, (z + at(rows, size - 24)) * by
    return _joined(rotated(e + f, 43) + rotated(g, 30) + h, e + rotated(f + a, 18) + g, by)


def _block(rows: np.ndarray, start: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Two words of 32 bytes, beginning with a and b."""
    w, x, y, z = (at(rows, start + i) for i in (0, 8, 16, 24))
    a = a + w
    b = rotated(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + rotated(a, 44) + c


def _longer(rows: np.ndarray) -> Words:
    size = rows.shape[1]
    seed = word(81)
    zeros = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        x = zeros + seed * _K2 + at(rows, 0)
        y = zeros + (seed * _K1 + np.uint64(113))
        z = mixed(y * _K2 + np.uint64(113)) * _K2
    v, w = (zeros, zeros), (zeros, zeros)
    for start in range(0, (size - 1) // 64 * 64, 64):
        x = rotated(x + y + v[0] + at(rows, start + 8), 37) * _K1
        y = rotated(y + v[1] + at(rows, start + 48), 42) * _K1
        x ^= w[1]
        y = y + v[0] + at(rows, start + 40)
        z = rotated(z + w[0], 33) * _K1
        v = _block(rows, start, v[1] * _K1, x + w[0])
        w = _block(rows, start + 32, z + w[1], y + at(rows, start + 16))
        z, x = x, z
    by = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    start = size - 64
    w = (w[0] + np.uint64((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = rotated(x + y + v[0] + at(rows, start + 8), 37) * by
    y = rotated(y + v[1] + at(rows, start + 48), 42) * by
    x ^= w[1] * np.uint64(9)
    y = y + v[0] * np.uint64(9) + at(rows, start + 40)
    z = rotated(z + w[0], 33) * by
    v = _block(rows, start, v[1] * by, x + w[0])
    w = _block(rows, start + 32, z + w[1], y + at(rows, start + 16))
    z, x = x, z
    return _joined(_joined(v[0], w[0], by) + mixed(y) * _K0 + z, _joined(v[1], w[1], by) + x, by)
