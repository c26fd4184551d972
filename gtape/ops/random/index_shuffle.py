"""random_index_shuffle: a shuffled order without a table.

A keyed permutation of [0, n], one index at a time: a Feistel network that walks cycles.

Luby and Rackoff 1988 ("How to construct pseudorandom permutations from pseudorandom functions");
walking until the image is in range: Black and Rogaway 2002 ("Ciphers with arbitrary finite
domains").
"""

from __future__ import annotations

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import host_value

#: Those of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
#: generators").
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every input bit changes every output bit."""
    for shift, factor in zip((30, 27), _MULTIPLIERS):
        x = (x ^ (x >> np.uint64(shift))) * factor
    return x ^ (x >> np.uint64(31))


def _encrypted(x: np.ndarray, key: np.ndarray, half: np.ndarray, rounds: int) -> np.ndarray:
    # A Feistel network: a permutation whatever its rounds do, since each can be undone.
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & mask
    for turn in range(rounds):
        left, right = right, left ^ (_mixed(right + key + np.uint64(turn << 40)) & mask)
    return (left << half) | right


def _permuted(index: np.ndarray, seed: np.ndarray, limit: np.ndarray, rounds: int) -> np.ndarray:
    """The images of `index` under the permutations of [0, limit] that the rows of `seed` choose."""
    with np.errstate(over="ignore"):
        key: np.ndarray = np.zeros(seed.shape[:-1], np.uint64)
        for part in np.moveaxis(seed.astype(np.int64).view(np.uint64), -1, 0):
            key = _mixed(key * np.uint64(3) + part)
        shape = np.broadcast_shapes(index.shape, key.shape, limit.shape)
        x, key, top = (np.array(np.broadcast_to(a, shape)).reshape(-1).astype(np.uint64)
                       for a in (index, key, limit))
        bits = np.array([max(int(n).bit_length(), 2) for n in top], np.uint64)
        half = (bits + np.uint64(1)) // np.uint64(2)
        todo = np.arange(x.size)
        while todo.size:
            x[todo] = _encrypted(x[todo], key[todo], half[todo], rounds)
            todo = todo[x[todo] > top[todo]]
    return x.reshape(shape).astype(index.dtype)


def random_index_shuffle(index: TensorLike, seed: TensorLike, max_index: TensorLike,
                         rounds: int = 4, name: str | None = None) -> Tensor:
    """The image of `index` under a permutation of [0, max_index] that `seed` chooses.

    Every index of the range has another image, computed by itself: a shuffled order without a
    table. The permutations are not those of TensorFlow.

    Args:
        index, max_index: integers, scalar or [n].
        seed: integers [3] or [n, 3].
        rounds: even, at least 4; more mix better.

    Raises:
        InvalidArgumentError: an index outside [0, max_index], a seed of another shape, or rounds.
    """
    like = convert(index)
    keys = host_value(seed, "random_index_shuffle: seed")
    limits = host_value(max_index, "random_index_shuffle: max_index")
    values = host_value(like, "random_index_shuffle: index")
    if values.dtype.kind not in "iu" or keys.shape[-1:] != (3,) or keys.ndim > 2:
        raise InvalidArgumentError(f"random_index_shuffle: index must be integers and seed of shape"
                                   f" [3] or [n, 3]; got {like.spec} and {list(keys.shape)}")
    if rounds < 4 or rounds % 2:
        raise InvalidArgumentError(f"random_index_shuffle: rounds must be even and at least 4; got "
                                   f"{rounds}")
    if bool((values < 0).any()) or bool((values > limits).any()):
        raise InvalidArgumentError(f"random_index_shuffle: indices must lie in [0, max_index]; got "
                                   f"{shown(values)} with max_index={shown(limits)}")
    return convert(_permuted(values, keys, limits, rounds), like.dtype, like._t.device)
