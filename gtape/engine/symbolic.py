"""The shapes of a layer's results, found without computing them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.autograph.calls import callee
from gtape.compile.result_specs import common, specs_of
from gtape.core.errors import NotTraceableError
from gtape.core.state import init_scope, paused

#: Lengths that stand in for those not known where shapes depend on numbers: there `fn` computes.
_SMALL = (2, 3)
_SPECS = (tf.TensorSpec, tf.SparseTensorSpec, tf.RaggedTensorSpec)


def amend_core(module: ModuleType) -> None:
    """Let Keras' TensorFlow backend find the shapes of results by gtape's traces."""
    keras_tensor, map_structure = module.KerasTensor, module.tree.map_structure

    def spec(x: Any) -> Any:
        if not isinstance(x, keras_tensor):
            return x
        return (tf.SparseTensorSpec if x.sparse else tf.TensorSpec)(x.shape, x.dtype)

    def symbolic(x: Any) -> Any:
        return x if not isinstance(x, _SPECS) else keras_tensor(
            tuple(x.shape), x.dtype.name, sparse=isinstance(x, tf.SparseTensorSpec))

    def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fn = callee(fn)

        def scoped(*args: Any, **kwargs: Any) -> Any:
            # A scope for each run: it holds what variables were set to, in its own trace.
            with module.StatelessScope(), module.SymbolicScope():
                return fn(*args, **kwargs)

        def computed(length: int) -> Any:
            given, named = map_structure(lambda x: _zeros(x, length), (args, kwargs))
            with paused(), init_scope():
                return specs_of(scoped(*given, **named))

        args, kwargs = map_structure(spec, (args, kwargs))
        try:
            made = tf.inspect.specs(scoped, *args, **kwargs)
        except NotTraceableError:
            made = common(*map(computed, _SMALL))
        return map_structure(symbolic, made)

    module.compute_output_spec = compute_output_spec  # type: ignore[attr-defined]


def _zeros(x: Any, length: int) -> Any:
    """Zeros that fit a spec; of a sparse tensor a single one."""
    if not isinstance(x, _SPECS):
        return x
    shape = [length if n is None else n for n in x.shape]
    if isinstance(x, tf.SparseTensorSpec):
        return tf.SparseTensor([[0] * len(shape)], tf.zeros([1], x.dtype), shape)
    return tf.zeros(shape, x.dtype)
