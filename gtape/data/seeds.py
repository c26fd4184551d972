"""Seeds: where pipelines draw their random numbers.

A transformation that draws gets its key when it is made: from its own seed and the global one of
`tf.random.set_seed`, or, without a seed of its own, from how many were made since the global seed
was set. Every pass draws from a generator of its own, so that a pass can be had again.
"""

from __future__ import annotations

import secrets

import numpy as np

from gtape.core.locks import lock
from gtape.ops.arguments import as_ints

#: The stream of `tf.random` whose position counts the transformations without a seed.
_STREAM = -0x64617461
_lock = lock()


class Seed:
    """What a transformation draws from: `generator()` starts a pass.

    Args:
        seed: an integer, a tensor of one, a pair as `tf.random` makes it, or None.
        renewed: whether every pass draws other numbers.

    Raises:
        TypeError: `seed` is none of these.
    """

    def __init__(self, seed: object, renewed: bool = True) -> None:
        from gtape.ops.random.streams import streams

        self._renewed = renewed
        self._passes = 0
        if seed is not None:
            self._key = [n & 0xFFFFFFFFFFFFFFFF for n in as_ints(seed, "a seed")]
            self._key.append(0 if streams.seed is None else 1 + streams.seed)
        elif streams.seed is None:
            self._key = [secrets.randbits(64)]
        else:
            self._key = [*(n & 0xFFFFFFFFFFFFFFFF for n in streams.take(_STREAM, 1)[0]),
                         streams.take(_STREAM, 1)[1]]

    def generator(self) -> np.random.Generator:
        """The generator of the next pass."""
        with _lock:
            number = self._passes if self._renewed else 0
            self._passes += 1
        entropy = np.random.SeedSequence([number, *self._key])
        return np.random.Generator(np.random.PCG64(entropy))
