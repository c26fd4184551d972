"""SymbolicTensor: a value of a trace. Its spec is known, its numbers are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gtape.core.context import here, resolve
from gtape.core.device import ArrayType
from gtape.core.errors import NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import SymbolicDim
from gtape.core.tensor import Tensor

if TYPE_CHECKING:
    from gtape.trace.tracer import Tracer
from gtape.core.annotations import DTypeLike

_ADVICE = {
    "bool()": "Use tf.cond or tf.where for a choice, tf.while_loop for a loop, "
              "tf.debugging.assert_* for a check",
    "format()": "Use tf.print, or f'{x}' for its dtype and shape",
    "an index": "Use tf.gather or tf.slice, or pass a Python integer to the function",
}


class SymbolicTensor(Tensor):
    """A value of a trace. `_shown` is the shape that users see, where some lengths are open."""

    __slots__ = ("__dict__", "__weakref__", "_k", "_shown", "_spec", "_t", "_tracer")

    def __init__(self, spec: Spec, array_type: ArrayType, tracer: Tracer) -> None:
        self._spec = spec
        self._t = array_type
        self._tracer = tracer
        self._k = 0  # no key until a tape watches or records it
        # Where the lengths of a SymbolicDim's stand-in would mislead: users see None.
        self._shown: TensorShape | None = None

    @property
    def shape(self) -> TensorShape:
        if self._shown is not None:
            return self._shown
        return TensorShape([None if type(n) is SymbolicDim else n for n in self._spec.shape])

    @property
    def spec(self) -> Spec:
        return self._spec

    @property
    def graph(self) -> Any:
        """The trace that it belongs to."""
        return self._tracer

    def _filled_(self, value: int) -> Tensor:
        return self._tracer.filled(self._spec, self._t, value)

    def _array_(self) -> NoReturn:
        raise NotTraceableError(f"{resolve(*here())}: this operation reads the numbers of "
                                f"{self._spec}, which are not known while tracing")

    def _peek(self) -> NoReturn:
        self._array_()

    def _exit(self, how: str) -> np.ndarray:
        if how == ".numpy()":
            # The type that TensorFlow's graph tensors raise.
            raise AttributeError("a traced tensor has no .numpy(): it has no value yet")
        site = resolve(*here())
        advice = _ADVICE.get(how, "Use tf.cast for a conversion")
        raise OperatorNotAllowedInGraphError(
            f"{site}: {how} needs the value of {self._spec}, which is not known while tracing"
            + (f" (`{site.text}`)" if site.text else "") + f". {advice}")

    def __format__(self, spec: str) -> str:
        # Without a spec only the shape is shown, which is known.
        return str(self) if not spec else format(self._exit("format()"), spec)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise NotImplementedError(  # as in TensorFlow, where NumPy's functions end in this one too
            f"NumPy cannot use the traced tensor {self._spec}; use the tf function of that name")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the traced tensor {self._spec} cannot be stored: it has no value")

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, traced>"

    __str__ = __repr__
