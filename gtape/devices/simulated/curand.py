"""cuRAND's pseudo-random generators, by NumPy's Philox.

Numbers are determined by the type, the seed and the offset; they are others than a GPU's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gtape.devices.simulated.device_arrays import array, later
from gtape.devices.simulated.stand_ins import Handles, StandIn

_SUCCESS, _NOT_INITIALIZED, _TYPE_ERROR, _OUT_OF_RANGE, _NOT_MULTIPLE = 0, 101, 103, 104, 105
_LAUNCH_FAILURE, _INTERNAL_ERROR = 201, 999
#: curandRngType: DEFAULT, XORWOW, MRG32K3A, MTGP32, MT19937, PHILOX4_32_10.
_TYPES = (100, 101, 121, 141, 142, 161)
_QUASI = range(200, 300)
_XORWOW, _WITHOUT_OFFSET = 101, (141, 142)  # cuRAND's Mersenne twisters do not skip ahead
_VERSION = 10400
#: Draws that an offset of 1 skips over, at least.
_DRAWS = 4
_P, _Z = ctypes.c_void_p, ctypes.c_size_t

library = StandIn("libcurand.so.10", "curand", _INTERNAL_ERROR, _INTERNAL_ERROR)


@dataclass
class CurandGenerator:
    """What curandCreateGenerator makes. Numbers are drawn in the order of calls; their writing, in
    that of the stream."""

    kind: int
    seed: int = 0
    offset: int = 0
    stream: int | None = None
    _draws: np.random.Generator | None = field(default=None, repr=False)

    def restart(self, **changes: int) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        self._draws = None

    def draws(self) -> np.random.Generator:
        if self._draws is None:
            # The kind too, or generators of one seed would all draw the same.
            bits = np.random.Philox(np.random.SeedSequence([self.kind, self.seed]))
            self._draws = np.random.Generator(bits.advance(_DRAWS * self.offset))
        return self._draws


_generators: Handles[CurandGenerator] = Handles()


def _put(number: int, address: int, count: int, dtype: Any,
         draw: Callable[[np.random.Generator], np.ndarray]) -> int:
    owner = _generators.get(number)
    if owner is None:
        return _NOT_INITIALIZED
    values = draw(owner.draws())  # now: `run` may be late, and streams overtake each other

    def run() -> None:
        array(address, (count,), dtype, written=True)[...] = values

    return _LAUNCH_FAILURE if later(owner.stream, run) else _SUCCESS


# ------------------------------------------------------------------ generators


@library.function("CreateGenerator", _P, ctypes.c_int)
def _create(to: int, kind: int) -> int:
    if kind in _QUASI:
        raise NotImplementedError("quasi-random generators of cuRAND are not simulated")
    if kind not in _TYPES:
        return _TYPE_ERROR
    number = max(_generators, default=0) + 1
    # DEFAULT is XORWOW: same numbers.
    _generators[number] = CurandGenerator(_XORWOW if kind == _TYPES[0] else kind)
    _P.from_address(to).value = number
    return _SUCCESS


@library.function("DestroyGenerator", _P)
def _destroy(number: int) -> int:
    return _SUCCESS if _generators.pop(number, None) else _NOT_INITIALIZED


@library.function("GetVersion", _P)
def _version(to: int) -> int:
    ctypes.c_int.from_address(to).value = _VERSION
    return _SUCCESS


@library.function("SetStream", _P, _P)
def _set_stream(number: int, stream: int | None) -> int:
    if number not in _generators:
        return _NOT_INITIALIZED
    _generators[number].stream = stream
    return _SUCCESS


@library.function("SetPseudoRandomGeneratorSeed", _P, ctypes.c_ulonglong)
def _set_seed(number: int, seed: int) -> int:
    if number not in _generators:
        return _NOT_INITIALIZED
    _generators[number].restart(seed=seed, offset=0)
    return _SUCCESS


@library.function("SetGeneratorOffset", _P, ctypes.c_ulonglong)
def _set_offset(number: int, offset: int) -> int:
    owner = _generators.get(number)
    if owner is None:
        return _NOT_INITIALIZED
    if owner.kind in _WITHOUT_OFFSET:
        return _TYPE_ERROR
    owner.restart(offset=offset)
    return _SUCCESS


@library.function("SetGeneratorOrdering", _P, ctypes.c_int)
def _set_ordering(number: int, order: int) -> int:
    if number not in _generators:
        return _NOT_INITIALIZED
    return _SUCCESS if 100 <= order <= 104 else _OUT_OF_RANGE


# ------------------------------------------------------------------ numbers


@library.function("Generate", _P, _P, _Z)
def _integers(number: int, to: int, count: int) -> int:
    return _put(number, to, count, np.uint32,
                lambda draws: draws.integers(0, 1 << 32, count, np.uint32))


@library.function("GenerateLongLong", _P, _P, _Z)
def _long_integers(number: int, to: int, count: int) -> int:
    return _TYPE_ERROR  # a matter of quasi-random generators of 64 bits


@library.function("GeneratePoisson", _P, _P, _Z, ctypes.c_double)
def _poisson(number: int, to: int, count: int, rate: float) -> int:
    if not rate > 0:
        return _OUT_OF_RANGE
    return _put(number, to, count, np.uint32, lambda draws: draws.poisson(rate, count))


def _of_dtype(suffix: str, kind: Any, real: Any) -> None:
    def uniform(number: int, to: int, count: int) -> int:
        # 0 is left out and 1 is not.
        return _put(number, to, count, kind, lambda draws: 1 - draws.random(count, kind))

    # Both normal ones: GPUs make them in pairs, so cuRAND refuses odd counts.
    def normal(number: int, to: int, count: int, mean: float, deviation: float) -> int:
        if count % 2:
            return _NOT_MULTIPLE
        return _put(number, to, count, kind,
                    lambda draws: draws.standard_normal(count, kind) * deviation + mean)

    def log_normal(number: int, to: int, count: int, mean: float, deviation: float) -> int:
        if count % 2:
            return _NOT_MULTIPLE
        return _put(number, to, count, kind,
                    lambda draws: np.exp(draws.standard_normal(count, kind) * deviation + mean))

    library.function(f"GenerateUniform{suffix}", _P, _P, _Z)(uniform)
    library.function(f"GenerateNormal{suffix}", _P, _P, _Z, real, real)(normal)
    library.function(f"GenerateLogNormal{suffix}", _P, _P, _Z, real, real)(log_normal)


_of_dtype("", np.float32, ctypes.c_float)
_of_dtype("Double", np.float64, ctypes.c_double)
