"""Hash functions of strings, whose values are the same on every machine and in every version: as
buckets and fingerprints.

They are SipHash-2-4, which a key makes unpredictable, MurmurHash64A, and FarmHash's Fingerprint64
(Geoff Pike, "FarmHash", 2014, github.com/google/farmhash: the function for 64-bit machines without
special instructions). Strings of one length take the same steps, so each is written once, for a
matrix of bytes whose rows are strings, with 64-bit words of every string at a time; `of_strings`
sorts strings by length and puts the results together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import int64, string, uint8
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints, named
from gtape.ops.text.steps import of_all, one_of, per_value, strings
from gtape.trace.host_steps import step

Words = np.ndarray


def word(value: int) -> np.uint64:
    """A constant."""
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def rotated(x: Words, by: int) -> Words:
    """The bits of x turned right by `by`."""
    # `by` as uint64: beside an int NumPy 1 would go over to float64.
    return (x >> np.uint64(by)) | (x << np.uint64(64 - by))


def mixed(x: Words) -> Words:
    """x with its upper bits folded onto the lower ones."""
    return x ^ (x >> np.uint64(47))


def at(rows: np.ndarray, start: int, dtype: str = "<u8") -> Words:
    """The little-endian numbers at byte `start` of each row."""
    size = np.dtype(dtype).itemsize
    numbers = np.ascontiguousarray(rows[:, start:start + size]).view(dtype)[:, 0]
    return numbers.astype(np.uint64)


def of_strings(strings: Sequence[bytes], function: Callable[[np.ndarray], Words]) -> Words:
    """`function` of the rows of each length: a uint64 for every string."""
    words = np.empty(len(strings), np.uint64)
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        text = b"".join([strings[i] for i in places.tolist()])
        words[places] = function(np.frombuffer(text, np.uint8).reshape(len(places), length))
    return words


#: "somepseudorandomlygeneratedbytes": the state before the key, Aumasson and Bernstein 2012.
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
#: TensorFlow's seed of MurmurHash64A, and the function's own multiplier.
_SEED = 0xDECAFCAFFE
_MULTIPLIER = word(0xC6A4A7935BD1E995)
#: FarmHash's: primes between 2^63 and 2^64.
_K0 = word(0xC3A5C85C97CB3127)
_K1 = word(0xB492B66FBE98F273)
_K2 = word(0x9AE16A3B2F90404F)


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
    tail = np.zeros(len(rows), np.uint64)
    whole = rows.shape[1] // 8 * 8
    for i in range(whole, rows.shape[1]):
        tail |= at(rows, i, "u1") << np.uint64(8 * (i - whole))
    return tail


def strong_hashes(strings: Sequence[bytes], key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each string under a key of two words, as uint64."""
    low, high = key
    start = [word(s ^ k) for s, k in zip(_START, (low, high, low, high))]

    def of_rows(rows: np.ndarray) -> Words:
        size = rows.shape[1]
        v: list[Words] = [np.full(len(rows), s) for s in start]
        # The length in the top byte: strings that differ by NULs at their ends differ in it.
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
        hashes = np.full(len(rows), word(_SEED ^ (size * int(_MULTIPLIER))))
        for i in range(0, size // 8 * 8, 8):
            part = mixed(at(rows, i) * _MULTIPLIER) * _MULTIPLIER
            hashes = (hashes ^ part) * _MULTIPLIER
        if size % 8:
            hashes = (hashes ^ _tail(rows)) * _MULTIPLIER
        return mixed(mixed(hashes) * _MULTIPLIER)

    return of_strings(strings, of_rows)


def fingerprints(strings: Sequence[bytes]) -> Words:
    """The fingerprint of each string, as uint64."""
    return of_strings(strings, _farm_hashes)


def _farm_hashes(rows: np.ndarray) -> Words:
    size = rows.shape[1]
    return (_to_16 if size <= 16 else _to_32 if size <= 32 else _to_64 if size <= 64
            else _longer)(rows)


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
    return _joined(*_ends(rows, by, _K1)[:2], by)


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
    # Scalars of NumPy warn where they overflow, arrays do not.
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


def _buckets(name: str, hashes: Callable[[Sequence[bytes]], Words], given: TensorLike,
             num_buckets: int) -> Tensor:
    x = strings(given, name)
    count = as_int(num_buckets, f"{name}: num_buckets")
    if not 1 <= count < 1 << 63:
        raise InvalidArgumentError(f"tf.strings.{name}: num_buckets must be at least 1, and less "
                                   f"than 2**63; got {count}")
    return of_all(name, lambda items: (hashes(items) % np.uint64(count)).astype(np.int64), x, int64)


def _unkeyed(name: str, hashes: Callable[[Sequence[bytes]], Words], doc: str,
             ) -> Callable[..., Tensor]:
    public = name

    def bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
        return _buckets(public, hashes, input, num_buckets)

    return per_value(named(bucket, name, f"""{doc}

    Raises:
        InvalidArgumentError: no strings, or fewer than one bucket.
    """))


to_hash_bucket_fast = _unkeyed("to_hash_bucket_fast", fingerprints, """\
FarmHash's Fingerprint64 of each string, modulo `num_buckets`: int64, and TensorFlow's.

    Whoever chooses the strings can choose their buckets; see `to_hash_bucket_strong`.""")
to_hash_bucket = _unkeyed("to_hash_bucket", quick_hashes, """\
MurmurHash64A of each string, modulo `num_buckets`: int64, and TensorFlow's.""")


@per_value
def to_hash_bucket_strong(input: TensorLike, num_buckets: int, key: object, name: str | None = None,
                          ) -> Tensor:
    """SipHash-2-4 of each string under a secret key of two integers of 64 bits, modulo
    `num_buckets`: int64. Raises InvalidArgumentError: no strings, fewer than one bucket, or no key
    of two integers."""
    words = as_ints(key, "to_hash_bucket_strong: key")
    if len(words) != 2 or not all(-(1 << 63) <= w < 1 << 64 for w in words):
        raise InvalidArgumentError(f"tf.strings.to_hash_bucket_strong: the key must have 2 "
                                   f"elements of 64 bits; got {shown(key)}")
    low, high = (w % (1 << 64) for w in words)
    return _buckets("to_hash_bucket_strong", lambda items: strong_hashes(items, (low, high)),
                    input, num_buckets)


def fingerprint(data: TensorLike, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """FarmHash's Fingerprint64 of each row of `data` as 8 bytes: uint8 [rows, 8]. A row's bytes are
    those of its numbers, or the fingerprints of its strings where it has many. Raises
    InvalidArgumentError: a scalar, or another method."""
    one_of("fingerprint: method", method, ("farmhash64",))
    x = convert(data)
    if not x.ndim:
        raise InvalidArgumentError(f"fingerprint: the data must have at least one axis; got "
                                   f"{x.spec}")

    def run(array: np.ndarray) -> list[np.ndarray]:
        rows = array.reshape(len(array), -1) if array.size else np.empty((len(array), 0))
        if x.dtype is not string:
            texts = [np.ascontiguousarray(row).tobytes() for row in rows]
        elif rows.shape[1] == 1:
            texts = list(rows[:, 0])
        else:
            # Little-endian, so that they are the same on every machine.
            parts = fingerprints(list(rows.reshape(-1))).astype("<u8").reshape(rows.shape)
            texts = [row.tobytes() for row in parts]
        return [fingerprints(texts).astype("<u8").view(np.uint8).reshape(len(rows), 8)]

    return step("fingerprint", run, [x], [Spec((x.spec.shape[0], 8), uint8)])[0]
