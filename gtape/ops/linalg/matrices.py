"""What the ops on matrices share: checks of shape and dtype, small floats, and failures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from gtape.core.device import ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import systems
from gtape.numerics.arrays import is_short
from gtape.ops.elementwise.operators import conj
from gtape.ops.shape.layout import swap_last

_NOTHING = nullcontext()
#: A well-conditioned matrix, which the ops are tested on.
WELL = [[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]]


def matrix_spec(name: str, x: Spec, square: bool = False) -> Spec:
    """`x`. Raises InvalidArgumentError unless it holds floating or complex (square) matrices."""
    if not x.dtype.is_differentiable:
        raise InvalidArgumentError(f"{name} takes floating or complex matrices; got {x}. "
                                   f"Write tf.cast(x, tf.float32)")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        what = "square matrices [..., n, n]" if square else "rank 2 or more"
        raise InvalidArgumentError(f"{name} needs {what}; got {x}")
    return x


def _failures_told(xp: ArrayModule) -> AbstractContextManager[object]:
    """Inside, CuPy raises LinAlgError as NumPy does."""
    if xp is np:
        return _NOTHING
    # CuPy must be asked to, since it then waits for the device.
    import cupyx

    return cupyx.errstate(linalg="raise")


def computed(xp: ArrayModule, failure: str, routine: Callable[..., object], *arrays: Any,
             rule: systems.NonfiniteRule | None = systems.NAN) -> Any:
    """routine(*arrays); the first array holds the matrices.

    Where it fails for a finite matrix, `failure` begins the error. A matrix that holds nan or inf,
    of which LAPACK may make a number, gives what `rule` says, each of a batch for itself; None is
    for a routine whose own arithmetic carries them through.
    """
    dtype = arrays[0].dtype
    # LAPACK has no float16 and no bfloat16.
    short = is_short(dtype)
    work = [a.astype(np.float32) for a in arrays] if short else arrays
    try:
        with _failures_told(xp):
            y = routine(*work) if rule is None else systems.guarded(xp, routine, work, rule)
    except np.linalg.LinAlgError as error:
        raise InvalidArgumentError(f"{failure} ({error})") from None
    return _narrowed(y, dtype) if short else y


def _narrowed(results: Any, dtype: np.dtype) -> Any:
    if isinstance(results, tuple):
        return tuple([_narrowed(m, dtype) for m in results])
    return results.astype(dtype) if results.dtype == np.float32 else results


def adjoint_of(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(swap_last(x))
