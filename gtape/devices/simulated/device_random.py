"""The distributions of cupy.random.Generator, whose kernels lie compiled in CuPy: by NumPy's.

CuPy's module calls them by their names in C++; a library that is loaded before it comes first. Each
is deterministic from the generator's kind and seed, with other numbers than a GPU's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.devices.simulated.device_arrays import array, later
from gtape.devices.simulated.stand_ins import Handles, StandIn

_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_long
_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
#: Letters of C++ names: int, long and the unsigned ones.
_MANGLED = {_I: "i", _L: "l", _U32: "j", _U64: "m"}
_WIDEST = 2**31 - 1

library = StandIn("libgtape-simulated-random.so", "_Z")
#: By the address of the states in device memory.
_draws: Handles[np.random.Generator] = Handles()


def _function(name: str, *types: Any) -> Callable[[Any], Any]:
    mangled = f"{len(name)}{name}{''.join(_MANGLED[kind] for kind in types)}"
    return library.function(mangled, *(_P if kind is _L else kind for kind in types))


@_function("init_curand_generator", _I, _L, _U64, _L, _L)
def _init(generator: int, state: int, seed: int, size: int, stream: int | None) -> None:
    bits = np.random.Philox(np.random.SeedSequence([generator, seed]))
    # In the stream's order: earlier draws may wait there.
    later(stream, lambda: _draws.__setitem__(state, np.random.Generator(bits)))


def _distribution(name: str, dtype: Any, parameters: tuple[Any, ...], draw: Callable[..., Any],
                  *scalars: Any) -> None:
    """`draw(draws, count, *parameters)` makes `count` numbers. Parameters are arrays of the dtypes
    that are given, and then numbers."""
    def call(generator: int, state: int, states: int, out: int, count: int, stream: int | None,
             *values: int) -> None:
        def run() -> None:
            given = [_array(place, kind) for place, kind in zip(values, parameters)]
            # 0 comes as None from c_void_p.
            found = draw(_draws[state], count or 0, *given, *values[len(parameters):])
            array(out, (count or 0,), dtype, written=True)[...] = found

        later(stream, run)

    _function(name, _I, _L, _L, _L, _L, _L, *(_L for _ in parameters), *scalars)(call)


def _array(place: int, kind: Any) -> np.ndarray:
    """Elements in order of an array that is described in device memory: its address, the number of
    its axes, its shape, its strides in bytes."""
    address, ndim = (int(word) for word in array(place, (2,), np.int64))
    words = array(place, (2 + 2 * ndim,), np.int64)[2:].tolist()
    size = np.dtype(kind).itemsize
    return array(address, words[:ndim], kind, [s // size for s in words[ndim:]]).ravel()


def _where(valid: np.ndarray, otherwise: Any, draw: Callable[..., Any], *parameters: np.ndarray,
           ) -> np.ndarray:
    """Draws where parameters are valid; `otherwise` where they are not, which NumPy refuses."""
    if valid.all():
        return np.asarray(draw(*parameters))
    result = np.full(valid.shape, otherwise)
    result[valid] = draw(*(p[valid] for p in parameters))
    return result


def _open(p: np.ndarray) -> np.ndarray:
    return (p > 0) & (p < 1)


_F, _N = np.float64, np.int64
_distribution("raw", np.uint32, (), lambda d, n: d.integers(0, 1 << 32, n, np.uint32))
_distribution("random_uniform", _F, (), lambda d, n: d.random(n))
_distribution("random_uniform_float", np.float32, (), lambda d, n: d.random(n, np.float32))
_distribution("standard_normal", _F, (), lambda d, n: d.standard_normal(n))
_distribution("standard_normal_float", np.float32, (),
              lambda d, n: d.standard_normal(n, np.float32))
_distribution("exponential", _F, (), lambda d, n: d.standard_exponential(n))
# The mask is for rejecting by hand, which NumPy does itself.
_distribution("interval_32", np.uint32, (), lambda d, n, most, mask: d.integers(
    0, most, n, np.uint32, endpoint=True), _U32, _U32)
_distribution("interval_64", np.uint64, (), lambda d, n, most, mask: d.integers(
    0, most, n, np.uint64, endpoint=True), _U64, _U64)
_distribution("beta", _F, (_F, _F), lambda d, n, a, b: _where(
    (a > 0) & (b > 0), np.nan, d.beta, a, b))
_distribution("standard_gamma", _F, (_F,), lambda d, n, shape: _where(
    shape >= 0, np.nan, d.standard_gamma, shape))
_distribution("poisson", _N, (_F,), lambda d, n, rate: _where(
    (rate >= 0) & (rate <= _WIDEST), 0, d.poisson, rate))
_distribution("geometric", _N, (_F,), lambda d, n, p: _where(
    (p > 0) & (p <= 1), 0, d.geometric, p))
_distribution("logseries", _N, (_F,), lambda d, n, p: _where(_open(p), 1, d.logseries, p))
_distribution("hypergeometric", _N, (_N, _N, _N), lambda d, n, good, bad, sample: _where(
    # More than all is all.
    (good >= 0) & (bad >= 0) & (sample >= 0), 0, d.hypergeometric, good, bad,
    np.minimum(sample, good + bad)))
# The last one is memory for constants of the method, which NumPy keeps itself.
_distribution("binomial", _N, (_N, _F), lambda d, n, trials, p, memory: _where(
    (trials >= 0) & (p >= 0) & (p <= 1), 0, d.binomial, trials, p), _L)
