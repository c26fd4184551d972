"""A built layer, called on one plain tensor as it was before, goes a short way to its `call`.

Keras binds the call's signature, converts and checks the arguments, resolves `training`, masks and
autocast scopes, and opens name scopes. Where a call of the same layer on a tensor of the same dtype
and shape has done all that, and what it depends on is the same object still, what remains is done
here: the call context with its `training`, `call`, and the masks of the outputs.

The shapes of a layer's results are found by traces, without computing them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from operator import is_
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gtape as tf
from gtape.autograph.convert import callee
from gtape.compile.frontend.result_specs import computed
from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import tracer_now
from gtape.core.errors import NotTraceableError
from gtape.core.tensor import EagerTensor
from gtape.engine.amendments import instead

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor
    from gtape.core.type_specs import TypeSpec


#: The attribute that holds what is known of a layer's calls.
_WAY = "_short_way_of_the_engine"
#: The attributes that say whether what was found out is true still.
_ANCHORS = ("built", "_input_spec", "_manual_input_spec", "_functional", "_inputs_struct",
            "_dtype_policy", "autocast", "activity_regularizer", "_supports_masking",
            "_convert_input_args", "_remat_mode", "_call_context_args", "call", "compute_mask")
_NO_SCOPE: Any = nullcontext()


def amend_layer(module: ModuleType) -> None:
    """Let `Layer.__call__` go the short way where there is one."""
    plain = module.Layer.__call__
    everything = module.global_state  # its tracker is another one after `clear_session`

    @instead(module.Layer, "__call__")
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or type(args[0]) is not EagerTensor or tracer_now() is not None or (
                kwargs and (len(kwargs) > 1 or type(kwargs.get("training")) is not bool)):
            return plain(self, *args, **kwargs)
        x, way, state = args[0], self.__dict__.get(_WAY), everything.GLOBAL_STATE_TRACKER
        if way is not None and (x._t, x._a.shape) in way.served and way.holds(self) and (
                getattr(x, "_keras_mask", None) is None
                and getattr(state, "autocast_scope", None) is None
                and getattr(state, "distribution", None) is None):
            return short(self, way, x, kwargs.get("training"), state)
        outputs = plain(self, x, **kwargs)
        if way is None or not way.holds(self):
            way = self.__dict__[_WAY] = _Way(self, module)
        if way.possible and len(way.served) < 64 and (  # shapes may be without number
                not self._convert_input_args or self.dtype_policy.convert_input(
                    x, self.autocast, self.input_dtype) is x):
            way.served.add((x._t, x._a.shape))
        return outputs

    def short(self: Any, way: _Way, x: EagerTensor, training: bool | None, state: Any) -> Any:
        context = getattr(state, "current_call_ctx", None)
        if context is None:
            context = state.current_call_ctx = module.CallContext(self)
            self._clear_losses()
        if training is None:
            training = getattr(context, "training", None)
        context.training = training = way.training if training is None else training
        named = {**way.named, "training": training} if way.trains else way.named
        try:
            with self._open_name_scope() if way.scoped else _NO_SCOPE:
                outputs = way.call(x, **named)
            if way.masks:
                self._set_mask_metadata(x, outputs, None)
            return outputs
        finally:
            if context.entry_layer is self:
                everything.GLOBAL_STATE_TRACKER.current_call_ctx = None


class _Way:
    """What a call of a layer on one tensor comes to.

    `served`: types and shapes that were taken as they are. `call`: the layer's, with what Keras
    adds to errors. `trains`: whether it takes `training`, whose default is `training`. `named`:
    what else it is given. `scoped`: whether it may look at the name scope.
    """

    def __init__(self, layer: Any, module: ModuleType) -> None:
        self._anchors = _anchors(layer)
        self.served: set[Any] = set()
        kind, policy, told = type(layer), layer._dtype_policy, module.traceback_utils
        parameters = layer._call_signature.parameters
        self.trains = "training" in parameters
        self.training = parameters["training"].default if self.trains else None
        self.possible = (
            layer.built and layer.activity_regularizer is None and not layer._remat_mode
            and layer._call_context_args == {"training"}
            and self.training is not module.inspect.Parameter.empty
            and not isinstance(policy, module.DTypePolicyMap)
            and policy.quantization_mode is None and policy.compute_dtype == policy.variable_dtype
            # What Keras checks of inputs depends on the anchors; a user's own check may not.
            and all(f.__module__.startswith("keras.src.") for f in (
                kind._assert_input_compatibility, kind.input_spec.fget, kind._open_name_scope,
                kind._get_call_context)))
        self.call = told.filter_traceback(told.inject_argument_info_in_traceback(
            layer.call, object_name=f"{kind.__name__}.call()"))
        self.named = {"mask": None} if "mask" in parameters else {}
        self.scoped = bool(layer._layers) or not kind.__module__.startswith("keras.src.layers.")
        self.masks = layer.supports_masking and not module.utils.is_default(layer.compute_mask)

    def holds(self, layer: object) -> bool:
        """Whether the layer's attributes are what they were."""
        return all(map(is_, _anchors(layer), self._anchors))


def _anchors(layer: Any) -> tuple[object, ...]:
    return (type(layer).call, *map(layer.__dict__.get, _ANCHORS))


def amend_dtypes(module: ModuleType) -> None:
    """Remember the dtypes of results."""
    plain, config = module.result_type, module.config
    of_all = functools.cache(lambda floatx, *dtypes: plain(*dtypes))

    @instead(module, "result_type")
    def result_type(*dtypes: object) -> str:
        try:
            return of_all(config.floatx(), *dtypes)
        except TypeError:  # something that cannot be hashed
            return plain(*dtypes)


def amend_core(module: ModuleType) -> None:
    """Give tensors back that are what they are to become."""
    plain = module.convert_to_tensor

    @instead(module, "convert_to_tensor")
    def convert_to_tensor(x: TensorLike | CompositeTensor, dtype: DTypeLike | None = None,
                          sparse: bool | None = None, ragged: object = None) -> Any:
        if type(x) is EagerTensor and (dtype is None or dtype == x._t.dtype.name):
            return x
        return plain(x, dtype, sparse, ragged)


_SPECS = (tf.TensorSpec, tf.SparseTensorSpec, tf.RaggedTensorSpec)


def amend_specs(module: ModuleType) -> None:
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
