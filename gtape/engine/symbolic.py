"""The shapes of a layer's results, found by a trace that is thrown away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.autograph.calls import callee
from gtape.core.errors import NotTraceableError
from gtape.core.lengths import SizeNeeded, Sizes
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.state import init_scope, paused, tracer_now
from gtape.core.tracer import Tracer

#: What stands in for lengths that are not known: larger than most kernels and windows, and two of
#: them, so that what differs between them is known to depend on a length.
_STAND_INS = (257, 263)
#: The same where results depend on numbers, as those of sparse tensors, so that zeros are computed
#: with.
_SMALL = (2, 3)


def amend_core(module: ModuleType) -> None:
    """Let Keras' TensorFlow backend find the shapes of results by a trace of gtape."""
    keras_tensor, map_structure = module.KerasTensor, module.tree.map_structure

    def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fn = callee(fn)

        def traced(length: Callable[[], Any]) -> Any:
            tracer = Tracer(tracer_now())

            def symbol(x: Any) -> Any:
                return _symbol(tracer, x, length) if isinstance(x, keras_tensor) else x

            def run() -> Any:
                return fn(*map_structure(symbol, args), **map_structure(symbol, kwargs))

            with paused():
                return described(tracer.run(run))

        def computed(length: int) -> Any:
            def value(x: Any) -> Any:
                return _value(x, length) if isinstance(x, keras_tensor) else x

            with paused(), init_scope():
                return described(fn(*map_structure(value, args), **map_structure(value, kwargs)))

        def described(made: Any) -> Any:
            return map_structure(lambda x: keras_tensor(
                _dims(x.shape), x.dtype, sparse=isinstance(x, module.tf.SparseTensor))
                if tf.is_tensor(x) else x, made)

        def scoped(run: Callable[..., Any], *given: Any) -> Any:
            # A scope for each: it holds what variables were set to, in its own trace.
            with module.StatelessScope(), module.SymbolicScope():
                return run(*given)

        try:
            sizes = Sizes()
            return scoped(traced, lambda: sizes.length(0, _STAND_INS[0]))
        except SizeNeeded:
            first, second = (scoped(traced, partial(int, n)) for n in _STAND_INS)
        except NotTraceableError:
            first, second = (scoped(computed, n) for n in _SMALL)
        return map_structure(lambda a, b: _common(keras_tensor, a, b), first, second)

    module.compute_output_spec = compute_output_spec  # type: ignore[attr-defined]


def _symbol(tracer: Tracer, x: Any, length: Callable[[], Any]) -> Any:
    dtype = tf.as_dtype(x.dtype)

    def of(shape: Any, dtype: Any) -> Any:
        made = tracer.symbol(Spec(tuple([length() if n is None else n for n in shape]), dtype))
        made._shown = TensorShape(shape)
        return made

    if x.sparse:
        return tf.SparseTensor(of((None, len(x.shape)), tf.int64), of((None,), dtype),
                               [length() if n is None else n for n in x.shape])
    return of(x.shape, dtype)


def _value(x: Any, length: int) -> Any:
    """Zeros of the shape of a KerasTensor; of a sparse one, a single one."""
    shape = [length if n is None else n for n in x.shape]
    if x.sparse:
        return tf.SparseTensor([[0] * len(shape)], tf.zeros([1], x.dtype), shape)
    return tf.zeros(shape, x.dtype)


def _dims(shape: TensorShape) -> tuple[int | None, ...]:
    return tuple(shape.as_list())


def _common(keras_tensor: Any, a: Any, b: Any) -> Any:
    """What two results have in common: lengths that differ are not known."""
    if not isinstance(a, keras_tensor):
        return a
    shape = [m if m == n else None for m, n in zip(a.shape, b.shape)]
    return keras_tensor(shape, a.dtype, sparse=a.sparse)
