"""Hash buckets and fingerprints: strings as numbers that are the same everywhere."""

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
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.text.hashes import Words, fingerprints, quick_hashes, strong_hashes
from gtape.ops.text.steps import of_all, one_of, per_value, strings
from gtape.trace.host_steps import step


def _buckets(name: str, hashes: Callable[[Sequence[bytes]], Words], given: TensorLike,
             num_buckets: int) -> Tensor:
    x = strings(given, name)
    count = as_int(num_buckets, f"{name}: num_buckets")
    if not 1 <= count < 1 << 63:
        raise InvalidArgumentError(f"tf.strings.{name}: num_buckets must be at least 1, and less "
                                   f"than 2**63; got {count}")
    return of_all(name, lambda items: (hashes(items) % np.uint64(count)).astype(np.int64), x,
                  int64)


@per_value
def to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """FarmHash's Fingerprint64 of each string, modulo `num_buckets`: int64, and TensorFlow's.

    Whoever chooses the strings can choose their buckets; see `to_hash_bucket_strong`.

    Raises:
        InvalidArgumentError: no strings, or fewer than one bucket.
    """
    return _buckets("to_hash_bucket_fast", fingerprints, input, num_buckets)


@per_value
def to_hash_bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """MurmurHash64A of each string, modulo `num_buckets`: int64, and TensorFlow's.

    Raises:
        InvalidArgumentError: no strings, or fewer than one bucket.
    """
    return _buckets("to_hash_bucket", quick_hashes, input, num_buckets)


@per_value
def to_hash_bucket_strong(input: TensorLike, num_buckets: int, key: object, name: str | None = None,
                          ) -> Tensor:
    """SipHash-2-4 of each string under a secret key, modulo `num_buckets`: int64.

    Args:
        input: strings.
        num_buckets: how many buckets.
        key: two integers of 64 bits.

    Raises:
        InvalidArgumentError: no strings, fewer than one bucket, or no key of two integers.
    """
    words = as_ints(key, "to_hash_bucket_strong: key")
    if len(words) != 2 or not all(-(1 << 63) <= w < 1 << 64 for w in words):
        raise InvalidArgumentError(f"tf.strings.to_hash_bucket_strong: the key must have 2 "
                                   f"elements of 64 bits; got {shown(key)}")
    low, high = (w % (1 << 64) for w in words)
    return _buckets("to_hash_bucket_strong", lambda items: strong_hashes(items, (low, high)),
                    input, num_buckets)


def fingerprint(data: TensorLike, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """FarmHash's Fingerprint64 of each row of `data` as 8 bytes: uint8 [rows, 8].

    A row's bytes are those of its numbers, or the fingerprints of its strings where it has many.

    Raises:
        InvalidArgumentError: a scalar, or another method.
    """
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
            parts = fingerprints(list(rows.reshape(-1))).astype("<u8").reshape(rows.shape)
            texts = [row.tobytes() for row in parts]
        return [fingerprints(texts).astype("<u8").view(np.uint8).reshape(len(rows), 8)]

    return step("fingerprint", run, [x], [Spec((x.spec.shape[0], 8), uint8)])[0]
