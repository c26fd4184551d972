"""cuFFT by NumPy: transforms of one to three axes, in batches, of any strides, unnormalised."""

from __future__ import annotations

import ctypes
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtape.devices.simulated.device_arrays import array, later
from gtape.devices.simulated.stand_ins import Handles, StandIn

_SUCCESS, _INVALID_PLAN, _INVALID_TYPE, _INVALID_VALUE, _FAILED = 0, 1, 3, 4, 6
_INVALID_SIZE, _NO_WORKSPACE, _NOT_SUPPORTED = 8, 13, 16
_FORWARD, _INVERSE = -1, 1
_VERSION = 12000  # 12.0.0, as the soname says
_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong

library = StandIn("libcufft.so.12", "cufft", _NOT_SUPPORTED, _FAILED)


@dataclass(frozen=True)
class Numbers:
    """What lies in memory: real or complex numbers, of `parts`."""

    parts: np.dtype
    complex: bool

    def read(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
        """A copy, half precision in single."""
        found = self._view(address, shape, strides, False)
        if self.parts.itemsize > 2:
            return found.copy()
        wide = found.astype(np.float32)
        return wide.view(np.complex64)[..., 0] if self.complex else wide

    def write(self, values: np.ndarray, address: int, strides: tuple[int, ...]) -> None:
        view = self._view(address, values.shape, strides, True)
        if self.parts.itemsize == 2 and self.complex:
            values = np.stack([values.real, values.imag], -1)
        with np.errstate(all="ignore"):  # a GPU's halves become inf without a word
            view[...] = values

    def _view(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...],
              written: bool) -> np.ndarray:
        if not self.complex:
            return array(address, shape, self.parts, strides, written=written)
        if self.parts.itemsize == 2:  # NumPy has no complex numbers of halves: pairs of them
            return array(address, (*shape, 2), self.parts, (*(2 * s for s in strides), 1),
                         written=written)
        kind = np.result_type(self.parts, np.complex64)
        return array(address, shape, kind, strides, written=written)


#: By cudaDataType.
_NUMBERS = {kind: Numbers(np.dtype(parts), is_complex) for kind, parts, is_complex in (
    (0, np.float32, False), (1, np.float64, False), (2, np.float16, False),
    (4, np.float32, True), (5, np.float64, True), (6, np.float16, True))}
#: By cufftType: what goes in, and what comes out.
_TYPES = {0x29: (4, 4), 0x2a: (0, 4), 0x2c: (4, 0), 0x69: (5, 5), 0x6a: (1, 5), 0x6c: (5, 1)}


@dataclass(frozen=True)
class Layout:
    """Where the elements of a batch lie: `embedding` is the shape that rows lie in, None for one
    transform after the other; distances in elements."""

    embedding: tuple[int, ...] | None
    stride: int
    distance: int

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of the batch and of each axis, for elements of a transform of `shape`."""
        if self.embedding is None:
            return tuple(math.prod(shape[i:]) for i in range(len(shape) + 1))
        inner = (self.stride * math.prod(self.embedding[i + 1:]) for i in range(len(shape)))
        return (self.distance, *inner)


_DENSE = Layout(None, 1, 0)


@dataclass
class FftPlan:
    """What cufftCreate makes, and what MakePlan says of it: nothing yet where `shape` is empty."""

    stream: int | None = None
    automatic: bool = True
    has_work_area: bool = False
    kinds: tuple[int, int] = (4, 4)
    shape: tuple[int, ...] = ()
    batch: int = 1
    source: Layout = _DENSE
    target: Layout = _DENSE

    def make(self, kinds: tuple[int, int], shape: tuple[int, ...], batch: int, source: Layout,
             target: Layout, size: int) -> int:
        if self.shape:  # cuFFT makes a plan once
            return _INVALID_PLAN
        if not 1 <= len(shape) <= 3 or min(shape) < 1 or batch < 1:
            return _INVALID_SIZE
        # Strides count for nothing without embeddings, says cuFFT's manual.
        if source.embedding is None or target.embedding is None:
            source = target = _DENSE
        self.kinds, self.shape, self.batch = kinds, shape, batch
        self.source, self.target = source, target
        parts = _NUMBERS[kinds[0]].parts.itemsize
        # Callers allocate it; NumPy has memory of its own.
        ctypes.c_size_t.from_address(size).value = 2 * parts * math.prod(shape)
        return _SUCCESS

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of what goes in and what comes out: of a real signal's spectrum, one half is kept."""
        half = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        complex_in, complex_out = (_NUMBERS[kind].complex for kind in self.kinds)
        return (self.shape if complex_out else half), (self.shape if complex_in else half)

    def strides(self, in_place: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shapes = self.shapes()
        if not in_place or self.source.embedding is not None or shapes[0] == shapes[1]:
            return self.source.strides(shapes[0]), self.target.strides(shapes[1])
        # Rows of real numbers that lie where their spectra do: as long as those are.
        half = shapes[0] if _NUMBERS[self.kinds[0]].complex else shapes[1]
        spectra = _DENSE.strides(half)
        real = _DENSE.strides((*half[:-1], 2 * half[-1]))
        return (spectra, real) if half == shapes[0] else (real, spectra)

    def execute(self, source: int, target: int, direction: int) -> int:
        if not self.shape:
            return _INVALID_PLAN
        if not self.automatic and not self.has_work_area:
            return _NO_WORKSPACE
        if not source or not target or direction not in (_FORWARD, _INVERSE):
            return _INVALID_VALUE
        take, put = (_NUMBERS[kind] for kind in self.kinds)
        shape, (strides, target_strides) = self.shapes()[0], self.strides(source == target)
        axes = tuple(range(1, len(self.shape) + 1))

        def run() -> None:
            values = take.read(source, (self.batch, *shape), strides)
            result: np.ndarray
            if not take.complex:
                result = np.fft.rfftn(values, axes=axes)
            elif not put.complex:  # forward: NumPy's inverses do not divide then, nor do cuFFT's
                result = np.fft.irfftn(values, s=self.shape, axes=axes, norm="forward")
            elif direction == _FORWARD:
                result = np.fft.fftn(values, axes=axes)
            else:
                result = np.fft.ifftn(values, axes=axes, norm="forward")
            put.write(result, target, target_strides)

        return _FAILED if later(self.stream, run) else _SUCCESS


_plans: Handles[FftPlan] = Handles()
_numbers = itertools.count(1)  # cufftHandle is an int; no number comes twice


# ------------------------------------------------------------------ plans


@library.function("Create", _P)
def _create(to: int) -> int:
    number = next(_numbers)
    _plans[number] = FftPlan()
    _I.from_address(to).value = number
    return _SUCCESS


@library.function("Destroy", _I)
def _destroy(plan: int) -> int:
    return _INVALID_PLAN if _plans.pop(plan, None) is None else _SUCCESS


@library.function("GetVersion", _P)
def _version(to: int) -> int:
    _I.from_address(to).value = _VERSION
    return _SUCCESS


@library.function("SetAutoAllocation", _I, _I)
def _set_automatic(plan: int, automatic: int) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    _plans[plan].automatic = bool(automatic)
    return _SUCCESS


@library.function("SetWorkArea", _I, _P)
def _set_work_area(plan: int, address: int | None) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    _plans[plan].has_work_area = True
    return _SUCCESS


@library.function("SetStream", _I, _P)
def _set_stream(plan: int, stream: int | None) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    _plans[plan].stream = stream
    return _SUCCESS


def _integers(address: int | None, count: int, kind: Any) -> tuple[int, ...] | None:
    return tuple((kind * count).from_address(address)) if address else None


@library.function("MakePlan1d", _I, _I, _I, _I, _P)
def _make_1d(plan: int, n: int, kind: int, batch: int, size: int) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    if kind not in _TYPES:
        return _INVALID_TYPE
    return _plans[plan].make(_TYPES[kind], (n,), batch, _DENSE, _DENSE, size)


@library.function("MakePlanMany", _I, _I, _P, _P, _I, _I, _P, _I, _I, _I, _I, _P)
def _make_many(plan: int, rank: int, n: int, inembed: int | None, istride: int, idist: int,
               onembed: int | None, ostride: int, odist: int, kind: int, batch: int,
               size: int) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    if kind not in _TYPES:
        return _INVALID_TYPE
    return _plans[plan].make(
        _TYPES[kind], _integers(n, rank, _I) or (), batch,
        Layout(_integers(inembed, rank, _I), istride, idist),
        Layout(_integers(onembed, rank, _I), ostride, odist), size)


@library.function("XtMakePlanMany", _I, _I, _P, _P, _L, _L, _I, _P, _L, _L, _I, _L, _P, _I)
def _xt_make_many(plan: int, rank: int, n: int, inembed: int | None, istride: int, idist: int,
                  source: int, onembed: int | None, ostride: int, odist: int, target: int,
                  batch: int, size: int, compute: int) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    take, put, inner = (_NUMBERS.get(kind) for kind in (source, target, compute))
    if take is None or put is None or inner is None or not inner.complex or not (
            take.parts == put.parts == inner.parts) or not (take.complex or put.complex):
        return _INVALID_TYPE
    shape = _integers(n, rank, _L) or ()
    if inner.parts.itemsize == 2 and any(side & (side - 1) for side in shape):
        return _NOT_SUPPORTED  # halves: powers of 2 only
    return _plans[plan].make(
        (source, target), shape, batch, Layout(_integers(inembed, rank, _L), istride, idist),
        Layout(_integers(onembed, rank, _L), ostride, odist), size)


# ------------------------------------------------------------------ transforms


def _execute(plan: int, kinds: tuple[int, int] | None, source: int, target: int,
             direction: int) -> int:
    if plan not in _plans:
        return _INVALID_PLAN
    if kinds is not None and _plans[plan].kinds != kinds:
        return _INVALID_TYPE
    return _plans[plan].execute(source, target, direction)


def _executes(name: str, kind: int, *more: Any) -> None:
    def call(plan: int, source: int, target: int, direction: int = _FORWARD) -> int:
        return _execute(plan, _TYPES[kind], source, target, direction)

    library.function(f"Exec{name}", _I, _P, _P, *more)(call)


for _name, _kind in (("R2C", 0x2a), ("C2R", 0x2c), ("D2Z", 0x6a), ("Z2D", 0x6c)):
    _executes(_name, _kind)
for _name, _kind in (("C2C", 0x29), ("Z2Z", 0x69)):
    _executes(_name, _kind, _I)


@library.function("XtExec", _I, _P, _P, _I)
def _xt_execute(plan: int, source: int, target: int, direction: int) -> int:
    return _execute(plan, None, source, target, direction)
