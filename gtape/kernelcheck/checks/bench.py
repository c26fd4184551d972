"""Bench: where a kernel is checked. It lays arrays out, runs, and compares with float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import CPU, on
from gtape.core.op import Op
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

#: Allowed difference, relative to the largest reference value, where the arithmetic is float32.
#: Two units in the last place of the short dtypes, which are rounded once, at the end; sixteen of
#: float32, whose sums round on the way; more of float64, in which the reference is computed too.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}


class Wrong(AssertionError):
    """A kernel's result is not the reference."""


class Check(NamedTuple):
    """One case of a kernel: `run` calls the host function on the bench and compares."""

    name: str
    run: Callable[[Bench], None]


class Bench:
    """An executor with arrays to try kernels on.

    Args:
        gpu: where kernels run.
        upload: a host array -> an array there.
        download: the way back.
    """

    def __init__(self, gpu: Executor, upload: Callable[[np.ndarray], Any],
                 download: Callable[[Any], np.ndarray]) -> None:
        self.gpu = gpu
        self._upload = upload
        self._download = download

    def array(self, values: Any, dtype: str, misaligned: bool = False) -> Any:
        """`values` on the device; misaligned: one element off the 16-byte boundary."""
        host = np.asarray(values).astype(numpy_dtype(dtype))
        if not misaligned:
            return self._upload(host.copy(order="C"))
        # One element off is what views of users' arrays have; allocations themselves are aligned.
        padded = np.zeros(host.size + 1, host.dtype)
        padded[1:] = host.reshape(-1)
        return self._upload(padded)[1:].reshape(host.shape)

    def host(self, array: Any) -> np.ndarray:
        """An array as float64, or as it is where it holds no floats."""
        copied = self._download(array)
        return copied if copied.dtype.kind in "iub" else copied.astype(np.float64)

    def same(self, what: str, got: Any, reference: TensorLike, tolerance: float | None = None,
             ) -> None:
        """Raises Wrong: `got` differs from the float64 `reference` by more than its dtype's
        tolerance (times the largest reference value), in shape, or in where it is nan."""
        dtype = got.dtype.name
        computed, wanted = self.host(got), np.asarray(reference)
        if computed.shape != wanted.shape:
            raise Wrong(f"{what}: shape {computed.shape}, and the reference {wanted.shape}")
        if computed.dtype.kind in "iub":
            bad = computed != wanted
        else:
            finite = wanted[np.isfinite(wanted)]
            # Relative to the largest: an element that is nearly 0 as a difference of large ones has
            # their error.
            scale = max(1e-30, float(np.abs(finite).max(initial=0)))
            allowed = (TOLERANCE[dtype] if tolerance is None else tolerance) * scale
            with np.errstate(invalid="ignore"):
                near = np.abs(computed - wanted) <= allowed
            bad = ~(near | (computed == wanted) | (np.isnan(computed) & np.isnan(wanted)))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise Wrong(f"{what} ({dtype}): {int(bad.sum())} of {bad.size} values are wrong; the "
                        f"first at {at}: {computed[at]!r}, and the reference {wanted[at]!r}")


def drawn(shape: Any, seed: int = 0, low: float = -2.0, high: float = 2.0,
          dtype: str = "float32") -> np.ndarray:
    """Uniform numbers of `shape` as float64, rounded to `dtype` so that a kernel and its
    reference read the same values."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return values.astype(numpy_dtype(dtype)).astype(np.float64)


def meant(op: Op, *arrays: np.ndarray, **attrs: Any) -> Any:
    """The result of an op, or the tuple of its results, by its definition in float64: what kernels
    are compared with."""
    assert op.definition is not None
    with on(CPU):
        results = op.definition(*[convert(a, None, CPU) for a in arrays], **attrs)
    if isinstance(results, tuple):
        return tuple(y.numpy() for y in results)
    return results.numpy()
