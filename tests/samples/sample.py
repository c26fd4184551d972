"""What a sample of a public function is: inputs, options, and where there is one a reference.

A sample stands for one call. Its floating inputs are drawn, or given, once in double precision, and
rounded to each dtype on which the sample runs; a reference computes with the rounded numbers in
double precision, so that what is compared is the error of gtape alone.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import gtape as tf

FLOATS = ("float32", "float64", "float16", "bfloat16")
WIDE = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


class Draw(NamedTuple):
    """Numbers of this shape from [low, high); real and imaginary parts of complex ones."""

    shape: tuple[int, ...]
    low: float = -1.5
    high: float = 1.5


class Sample(NamedTuple):
    """One call. `function` stands in for the public function `name` where a call needs more."""

    name: str
    inputs: tuple[Any, ...]
    options: dict[str, Any]
    reference: Callable[..., Any] | None
    function: Callable[..., Any] | None
    dtypes: tuple[str, ...]
    #: How many rounding units of the dtype a result may be off, relative to itself; with `mixed`,
    #: relative to the largest entry, as in sums and products of matrices.
    near: float
    mixed: bool
    #: The derivatives that are compared with differences; 0 for none.
    orders: int
    #: Whether gradients are looked at.
    gradients: bool
    #: Whether it can be part of a function.
    traced: bool


def of(*shape: int, low: float = -1.5, high: float = 1.5) -> Draw:
    return Draw(shape, low, high)


def sample(name: str, *inputs: Any, reference: Callable[..., Any] | None = None,
           function: Callable[..., Any] | None = None, dtypes: tuple[str, ...] = FLOATS,
           near: float = 16, mixed: bool = True, orders: int = 2, gradients: bool = True,
           traced: bool = True, **options: Any) -> Sample:
    """A `Sample` with the options of the call as keywords."""
    return Sample(name, inputs, options, reference, function, dtypes, near, mixed,
                  orders if gradients else 0, gradients, traced)


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def unit(name: str) -> float:
    """The rounding unit: the step from 1 to the next number."""
    real = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    return float(ml_dtypes.finfo(numpy_dtype(real)).eps)


def label(s: Sample) -> str:
    """What tells a sample from the others of its function."""
    shapes = [list(i.shape) if isinstance(i, Draw) else (np.shape(i) and list(np.shape(i))) or "()"
              for i in s.inputs]
    options = ",".join(f"{k}={v!r:.20}" for k, v in s.options.items())
    return f"{s.name}-{'-'.join(str(x).replace(' ', '') for x in shapes)}-{options}"


def _is_floating(value: Any) -> bool:
    return isinstance(value, Draw) or np.asarray(value).dtype.kind in "fc"


def arrays(s: Sample, dtype: str) -> list[np.ndarray]:
    """The inputs in `dtype`; integers, bools and strings as they are."""
    rng = np.random.default_rng(zlib.crc32(label(s).encode()))
    made = []
    for item in s.inputs:
        if isinstance(item, Draw):
            array: Any = rng.uniform(item.low, item.high, item.shape)
            if dtype.startswith("complex"):
                array = array + 1j * rng.uniform(item.low, item.high, item.shape)
        else:
            array = np.asarray(item)
        with np.errstate(all="ignore"):
            made.append(np.asarray(array).astype(numpy_dtype(dtype)) if _is_floating(item)
                        else array)
    return made


def widened(values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same numbers in double precision."""
    wide = []
    for v in values:
        kind = "complex128" if v.dtype.kind == "c" else "float64"
        wide.append(v.astype(kind) if v.dtype.kind in "fcV" else v)
    return wide


def call(s: Sample, inputs: Sequence[Any]) -> list[Any]:
    """The results of the call as a flat list of tensors."""
    function = s.function or operator.attrgetter(s.name)(tf)
    made = function(*inputs, **s.options)
    return [tf.convert_to_tensor(x) for x in tf.nest.flatten(made)]


def weights(result: Any) -> np.ndarray:
    """Numbers of the shape of a result, none of them alike: the cotangent that is pulled back."""
    count = int(np.prod(result.shape, dtype=int))
    made = 1.0 + 0.5 * np.cos(np.arange(count, dtype=np.float64)).reshape(tuple(result.shape))
    return made.astype(numpy_dtype(result.dtype.name))


def with_gradients(s: Sample, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results, and the gradients of their weighted sum by the floating inputs."""
    sources = [x for x in inputs if s.gradients and (x.dtype.is_floating or x.dtype.is_complex)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        results = call(s, inputs)
    targets = [r for r in results if r.dtype.is_floating or r.dtype.is_complex]
    if not sources or not targets:
        return results, []
    seeds = [tf.constant(weights(t)) for t in targets]
    found = tape.gradient(targets, sources, output_gradients=seeds)
    return results, [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g
                     for g in found]
