"""The shapes of a layer's results, found without computing them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gtape as tf
from gtape.autograph.convert import callee
from gtape.compile.frontend.result_specs import computed
from gtape.core.errors import NotTraceableError
from gtape.engine.amendments import instead

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor
    from gtape.core.type_specs import TypeSpec

_SPECS = (tf.TensorSpec, tf.SparseTensorSpec, tf.RaggedTensorSpec)


def amend_core(module: ModuleType) -> None:
    """Let Keras' TensorFlow backend find the shapes of results by gtape's traces."""
    keras_tensor, map_structure = module.KerasTensor, module.tree.map_structure

    def spec(x: object) -> Any:
        if not isinstance(x, keras_tensor):
            return x
        return (tf.SparseTensorSpec if x.sparse else tf.TensorSpec)(x.shape, x.dtype)

    def symbolic(x: TypeSpec) -> Any:
        return x if not isinstance(x, _SPECS) else keras_tensor(
            tuple(x.shape), x.dtype.name, sparse=isinstance(x, tf.SparseTensorSpec))

    @instead(module, "compute_output_spec")
    def compute_output_spec(fn: Callable[..., object], *args: object, **kwargs: Tensor) -> Any:
        fn = callee(fn)

        def scoped(*args: Tensor, **kwargs: Tensor) -> Any:
            # A scope for each run: it holds what variables were set to, in its own trace.
            with module.StatelessScope(), module.SymbolicScope():
                return fn(*args, **kwargs)

        args, kwargs = map_structure(spec, (args, kwargs))
        try:
            made = tf.inspect.specs(scoped, *args, **kwargs)
        except NotTraceableError:
            made = computed(scoped, args, kwargs)
        return map_structure(symbolic, made)
