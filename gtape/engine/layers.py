"""A built layer, called on one plain tensor as it was before, goes a short way to its `call`.

Keras binds the call's signature, converts and checks the arguments, resolves `training`, masks and
autocast scopes, and opens name scopes. Where a call of the same layer on a tensor of the same dtype
and shape has done all that, and what it depends on is the same object still, only what remains to
be done is done here: the call context with its `training`, `call`, and the masks of the outputs.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from operator import is_
from types import ModuleType
from typing import Any, NoReturn

from gtape.core.state import tracer_now
from gtape.core.tensor import EagerTensor

#: The attribute that holds what is known of a layer's calls.
_WAY = "_short_way_of_the_engine"
#: The attributes that say whether what was found out is true still.
_ANCHORS = ("built", "_input_spec", "_manual_input_spec", "_functional", "_inputs_struct",
            "_dtype_policy", "autocast", "activity_regularizer", "_supports_masking",
            "_convert_input_args", "_remat_mode", "_call_context_args", "call", "compute_mask")
#: Shapes remembered for one layer.
_MOST = 64
_NO_SCOPE: Any = nullcontext()


def amend_layer(module: ModuleType) -> None:
    """Let `Layer.__call__` go the short way where there is one."""
    layer_class = module.Layer
    plain = layer_class.__call__
    everything = module.global_state  # its tracker is another one after `clear_session`
    filtered = module.traceback_utils.filter_traceback

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or type(args[0]) is not EagerTensor or tracer_now() is not None or (
                kwargs and (len(kwargs) > 1 or type(kwargs.get("training")) is not bool)):
            return plain(self, *args, **kwargs)
        x, space = args[0], self.__dict__
        way = space.get(_WAY)
        if way is not None and (x._t, x._a.shape) in way.served:
            state = everything.GLOBAL_STATE_TRACKER
            if way.open(space, x, state):
                return short(self, way, x, kwargs.get("training"), state)
        outputs = plain(self, x, **kwargs)
        if way is None or not way.holds(space):
            way = space[_WAY] = _Way(self, module)
        if way.possible and len(way.served) < _MOST and way.unchanged(self, x):
            way.served.add((x._t, x._a.shape))
        return outputs

    def short(self: Any, way: _Way, x: EagerTensor, training: bool | None, state: Any) -> Any:
        context = getattr(state, "current_call_ctx", None)
        if context is None:
            context = state.current_call_ctx = module.CallContext(self)
            self._clear_losses()
        if training is None:
            training = getattr(context, "training", None)
            if training is None:
                training = way.training
        context.training = training
        named = way.named if training is None or not way.trains else (
            {**way.named, "training": training})
        try:
            with self._open_name_scope() if way.scoped else _NO_SCOPE:
                try:
                    outputs = self.call(x, **named)
                except Exception as error:
                    filtered(_explained)(module, self, error, x, named)
            if way.masks:
                self._set_mask_metadata(x, outputs, None)
            return outputs
        finally:
            state = everything.GLOBAL_STATE_TRACKER
            context = getattr(state, "current_call_ctx", None)
            if context is None or context.entry_layer is self:
                state.current_call_ctx = None

    layer_class.__call__ = call


class _Way:
    """What a call of a layer on one tensor comes to.

    `possible`: whether there is a short way. `served`: the types and shapes of tensors that the
    layer took as they are. `trains`: whether `call` takes `training`; its default is `training`.
    `named`: what else it is given. `scoped`: whether `call` may look at the name scope. `masks`:
    whether the layer makes masks.
    """

    __slots__ = ("_anchors", "masks", "named", "possible", "scoped", "served", "training", "trains")

    def __init__(self, layer: Any, module: ModuleType) -> None:
        self._anchors = tuple(map(layer.__dict__.get, _ANCHORS))
        self.served: set[Any] = set()
        kind, parameters = type(layer), layer._call_signature.parameters
        policy = layer._dtype_policy
        self.possible = (
            layer.built and layer.activity_regularizer is None and not layer._remat_mode
            and layer._call_context_args == {"training"}
            and not isinstance(policy, module.DTypePolicyMap)
            and policy.quantization_mode is None and policy.compute_dtype == policy.variable_dtype
            # What Keras checks of inputs depends on the anchors; a user's own check may not.
            and _of_keras(kind._assert_input_compatibility) and _of_keras(kind.input_spec.fget)
            and _of_keras(kind._open_name_scope) and _of_keras(kind._get_call_context))
        self.trains = "training" in parameters
        default = parameters["training"].default if self.trains else None
        self.training = None if default is module.inspect.Parameter.empty else default
        self.named = {"mask": None} if "mask" in parameters else {}
        self.scoped = bool(layer._layers) or not kind.__module__.startswith("keras.src.layers.")
        self.masks = layer.supports_masking and not module.utils.is_default(layer.compute_mask)

    def holds(self, space: dict[str, Any]) -> bool:
        """Whether the layer's attributes are what they were."""
        return all(map(is_, map(space.get, _ANCHORS), self._anchors))

    def open(self, space: dict[str, Any], x: EagerTensor, state: Any) -> bool:
        """Whether this call can go here: no mask on `x`, no scope that changes what layers do."""
        return (getattr(x, "_keras_mask", None) is None
                and getattr(state, "autocast_scope", None) is None
                and getattr(state, "distribution", None) is None and self.holds(space))

    @staticmethod
    def unchanged(layer: Any, x: EagerTensor) -> bool:
        """Whether Keras gives `x` to the layer as it is."""
        return not layer._convert_input_args or layer.dtype_policy.convert_input(
            x, layer.autocast, layer.input_dtype) is x


def _of_keras(function: Any) -> bool:
    return bool(function.__module__.startswith("keras.src."))


def _explained(module: ModuleType, layer: Any, error: Exception, x: Any, named: dict[str, Any],
               ) -> NoReturn:
    """Raise the error of a layer's `call` with what Keras adds to it."""
    @functools.wraps(layer.call)
    def fail(*args: Any, **kwargs: Any) -> NoReturn:
        raise error

    name = f"{type(layer).__name__}.call()"
    module.traceback_utils.inject_argument_info_in_traceback(fail, object_name=name)(x, **named)
    raise error
