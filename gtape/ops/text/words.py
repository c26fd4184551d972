"""Arithmetic of 64-bit words for hash functions, on arrays: a word of every string at a time.

Strings of one length take the same steps, so a hash function is written once, for a matrix of
bytes whose rows are strings; `of_strings` sorts strings by length and puts the results together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Words = np.ndarray


def word(value: int) -> np.uint64:
    """A constant."""
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def rotated(x: Words, by: int) -> Words:
    """The bits of x turned right by `by`."""
    return (x >> np.uint64(by)) | (x << np.uint64(64 - by))


def mixed(x: Words) -> Words:
    """x with its upper bits folded onto the lower ones."""
    return x ^ (x >> np.uint64(47))


def at(rows: np.ndarray, start: int, dtype: str = "<u8") -> Words:
    """The little-endian numbers at byte `start` of each row."""
    size = np.dtype(dtype).itemsize
    found = np.ascontiguousarray(rows[:, start:start + size]).view(dtype)[:, 0]
    return found.astype(np.uint64)


def of_strings(strings: Sequence[bytes], function: Callable[[np.ndarray], Words]) -> Words:
    """`function` of the rows of each length: a uint64 for every string."""
    made = np.empty(len(strings), np.uint64)
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        text = b"".join([strings[i] for i in places.tolist()])
        made[places] = function(np.frombuffer(text, np.uint8).reshape(len(places), length))
    return made
