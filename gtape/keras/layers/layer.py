"""Layer: the base class of everything that has weights and can be called."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np

from gtape.core.dtypes import DType, as_dtype
from gtape.core.module import is_variable
from gtape.core.state import init_scope, tracer_now
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.text import shown
from gtape.keras import config, naming
from gtape.keras.layers import context, tracking
from gtape.keras.layers.arguments import first_shape, layer_inputs, leftover_arguments
from gtape.keras.layers.tracking import Tracker
from gtape.keras.variables import KerasVariable

_NOTHING: Any = nullcontext()
#: Layers that hold losses added in a call; the next outermost call drops them.
_with_losses: list[Any] = []


def _building(build: Any) -> Any:
    """A `build` that names variables after the layer, and marks the layer as built.

    Weights have first values that are there at once, also where a traced function makes them.
    """
    @functools.wraps(build)
    def wrapped(self: Layer, *args: Any, **kwargs: Any) -> None:
        tracer = tracer_now()
        known = set() if tracer is None else {v._resource_()._k for v in self.weights}
        with naming.scope(self.name), init_scope() if tracer is not None else _NOTHING:
            build(self, *args, **kwargs)
        self.built = True
        if tracer is not None:
            for state in [v._resource_() for v in self.weights]:
                if state._k not in known:
                    tracer.creating(state)

    return wrapped


class Layer(Tracker):
    """A function with weights. Subclasses override `build(input_shape)` and `call(inputs)`.

    `build` makes the weights with `add_weight`; it runs at the first call. `training=` and
    `mask=` reach `call` when it has such parameters; the value of `training` given to an outer
    layer holds for the layers inside.

    Args:
        activity_regularizer: a function of the output, whose value is added to `losses`.
        trainable: whether tapes watch the weights by themselves.
        dtype: the dtype of the weights and of floating inputs; `keras.config.floatx()` unless
            given.
        name: for variables and messages; the class name in snake case, numbered, unless given.

    Raises:
        ValueError: unknown keyword arguments, a name with '/', a dtype that is not floating.
    """

    _signature: ClassVar[context.CallSignature]
    #: Losses added during the last call.
    _added: list[Any]
    _takes_training: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _building(cls.__dict__["build"])  # type: ignore[method-assign]
        if "call" in cls.__dict__:
            cls._signature = context.signature_of(cls.__dict__["call"])
            cls._takes_training = cls._signature.takes("training")

    def __init__(self, *, activity_regularizer: Any = None, trainable: bool = True,
                 dtype: Any = None, autocast: bool = True, name: str | None = None,
                 **kwargs: Any) -> None:
        self._given_shape = leftover_arguments(type(self).__name__, kwargs)
        self._name = naming.numbered(naming.snake_case(type(self).__name__)) if name is None \
            else naming.checked(name)
        self._scope_name = f"{self._name}/"
        self._dtype = self._policy(dtype)
        self._trainable = bool(trainable)
        self.autocast = bool(autocast)
        self.built = False
        self.activity_regularizer = None
        self.__dict__["_added"] = []
        if activity_regularizer is not None:
            from gtape.keras import regularizers

            self.activity_regularizer = regularizers.get(activity_regularizer)

    @staticmethod
    def _policy(dtype: Any) -> DType:
        if isinstance(dtype, str) and dtype.startswith("mixed_"):
            raise ValueError(f"the mixed policy '{dtype}' is not supported: a layer computes in "
                             f"the dtype of its weights; give dtype='float32' or 'float16'")
        wanted = as_dtype(config.floatx() if dtype is None else dtype)
        if not (wanted.is_floating or wanted.is_complex):
            raise ValueError(f"the dtype of a layer must be floating; got {dtype!r}")
        return wanted

    # ------------------------------------------------------------------ what it is

    @property
    def dtype(self) -> str:
        """The name of the dtype of the weights."""
        return self._dtype.name

    variable_dtype = compute_dtype = dtype

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the weights by themselves; setting it reaches all layers inside."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        tracking.changes.count += 1
        for leaf in self._held():
            if is_variable(leaf):
                if id(leaf) not in self._never_trainable:
                    leaf.trainable = self._trainable
            elif isinstance(leaf, Layer):
                leaf.trainable = value

    @property
    def _never_trainable(self) -> set[int]:
        return self.__dict__.setdefault("_fixed", set())

    def build(self, input_shape: Any) -> None:
        """Make the weights. Nothing to make unless overridden."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's function; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define call(self, inputs)")

    def add_weight(self, shape: Any = None, initializer: Any = None, dtype: Any = None,
                   trainable: bool = True, autocast: bool = True, regularizer: Any = None,
                   constraint: Any = None, aggregation: str = "none",
                   overwrite_with_gradient: bool = False, name: str | None = None,
                   ) -> KerasVariable:
        """A new variable of this layer.

        Args:
            shape: its shape; () unless given.
            initializer: a name or an object of `keras.initializers`; glorot_uniform for floating
                dtypes, zeros for others, unless given.
            name: the last part of its path; 'variable' unless given.

        Raises:
            ValueError: the shape holds None, or is a name.
        """
        from gtape.keras import constraints, initializers, regularizers

        if isinstance(shape, str):
            raise ValueError(f"add_weight: the first argument is the shape; got "
                             f"{shown(shape)}. Write "
                             f"add_weight(shape=…, name={shown(shape)})")
        wanted = as_dtype(dtype or self._dtype)
        size = (shape,) if isinstance(shape, int) else tuple(shape or ())
        if any(n is None for n in size):
            raise ValueError(f"add_weight: every length of the shape must be known; got {size}")
        if initializer is None:
            initializer = "glorot_uniform" if wanted.is_floating else "zeros"
        with naming.scope(self._name):
            made = KerasVariable(
                initializers.get(initializer)(size, dtype=wanted), wanted,
                trainable and self._trainable, naming.checked(name or "variable"),
                regularizers.get(regularizer), constraints.get(constraint))
        self._tracked[f"+{made.path}+{len(self._tracked)}"] = made
        tracking.changes.count += 1
        if not trainable:
            self._never_trainable.add(id(made))
        return made

    def add_loss(self, loss: Any) -> None:
        """Add a scalar to `losses`, until the next call."""
        if not self._added:
            _with_losses.append(self)
        self._added.extend(loss if isinstance(loss, (list, tuple)) else [loss])

    # ------------------------------------------------------------------ the call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_name" not in self.__dict__:
            raise RuntimeError(f"{type(self).__name__} is not initialised: call "
                               f"super().__init__() first in its __init__")
        if args:
            first = args[0]
            if not (type(first) is EagerTensor and first._t.dtype is self._dtype):
                args = (self._accepted(first), *args[1:])
        if not self.built:
            with naming.scope(self._name):
                self._build_for(args, kwargs)
                return self._called(args, kwargs)
        return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (self._takes_training or self._holder or _with_losses or kwargs):
            result = self.call(*args)
        else:
            result = self._call_inside(args, kwargs)
        if self.activity_regularizer is not None:
            batch = max(1, result.shape[0] or 1) if result.ndim else 1
            self.add_loss(self.activity_regularizer(result) / batch)
        return result

    def _call_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`call`, with the training flag resolved and passed on to the layers inside."""
        outer = context.current.get()
        if outer is None and _with_losses:
            self._drop_losses()
        training = kwargs.pop("training", None)
        if self._takes_training:
            at = self._signature.names.index("training")
            if len(args) > at:
                args, training = (*args[:at], *args[at + 1:]), args[at]
        if training is None and outer is not None:
            training = outer.training
        if training is None:
            training = self._signature.defaults.get("training")
        if self._takes_training:
            kwargs["training"] = training
        if not self._holder:
            return self.call(*args, **kwargs)
        token = context.current.set(context.Call(training))
        try:
            return self.call(*args, **kwargs)
        finally:
            context.current.reset(token)

    def _accepted(self, value: Any) -> Any:
        return layer_inputs(self._name, value, self._dtype if self.autocast else None)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.build(first_shape(args, kwargs))
        self.built = True

    def _drop_losses(self) -> None:
        mine = {id(layer) for layer in self._layers_deep()}
        for layer in [known for known in _with_losses if id(known) in mine]:
            layer._added.clear()
            _with_losses.remove(layer)

    @property
    def losses(self) -> list[Tensor]:
        """What the last call added, and the penalties of the regularizers of weights."""
        found = [loss for layer in self._layers_deep() for loss in layer._added]
        for variable in self.trainable_weights:
            if getattr(variable, "regularizer", None) is not None:
                found.append(variable.regularizer(variable))
        return found

    # ------------------------------------------------------------------ weights

    def _layers_deep(self) -> Iterator[Layer]:
        """This layer and all layers inside."""
        yield self
        for leaf in self._held():
            if isinstance(leaf, Layer):
                yield from leaf._layers_deep()

    def _variables(self, name: str, wanted: Any) -> list[Any]:
        """The variables that are `wanted`; remembered under `name` until some attribute changes."""
        kept = self.__dict__.get("_listed", {}).get(name)
        if kept is not None and kept[0] == tracking.changes.count:
            return list(kept[1])
        found: dict[int, Any] = {}
        self._gather(found)
        made = [v for v in found.values() if wanted(v)]
        if self._settled():
            self.__dict__.setdefault("_listed", {})[name] = (tracking.changes.count, made)
        return list(made)

    def _gather(self, found: dict[int, Any]) -> None:
        own = [leaf for leaf in self._held() if is_variable(leaf)]
        fixed = self._never_trainable
        for variable in sorted(own, key=lambda v: id(v) in fixed or (
                not v.trainable and self._trainable)):
            found.setdefault(id(variable._resource_()), variable)
        for leaf in self._held():
            if isinstance(leaf, Layer):
                leaf._gather(found)
            elif not is_variable(leaf):
                for variable in leaf.variables:
                    found.setdefault(id(variable._resource_()), variable)

    @property
    def weights(self) -> list[Any]:
        """All variables: those of this layer, trainable ones first, then those of layers inside."""
        return self._variables("all", lambda v: True)

    variables = weights  # type: ignore[assignment]

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that tapes watch by themselves."""
        return self._variables("trainable", lambda v: v.trainable) if self._trainable else []

    trainable_variables = trainable_weights  # type: ignore[assignment]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables, such as moving averages."""
        if not self._trainable:
            return self.weights
        return self._variables("others", lambda v: not v.trainable)

    non_trainable_variables = non_trainable_weights  # type: ignore[assignment]

    def get_weights(self) -> list[np.ndarray]:
        """The values of `weights` as NumPy arrays."""
        return [np.array(v._resource_()._value._peek()) for v in self.weights]

    def set_weights(self, weights: Any) -> None:
        """Assign the arrays of `get_weights`.

        Raises:
            ValueError: another number of arrays, or other shapes.
        """
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(f"set_weights: the layer '{self.name}' has {len(mine)} weights; got "
                             f"{len(weights)} arrays")
        for variable, value in zip(mine, weights):
            if tuple(variable.shape) != np.shape(value):
                raise ValueError(f"set_weights: '{variable.name}' of the layer '{self.name}' has "
                                 f"shape {variable.shape}; got {np.shape(value)}")
            variable.assign(np.asarray(value, variable.dtype.np_dtype))

    def count_params(self) -> int:
        """The number of elements of all weights.

        Raises:
            ValueError: the layer is not built yet.
        """
        if not self.built:
            raise ValueError(f"the layer '{self.name}' has no weights yet; call it, or "
                             f"build(input_shape), first")
        return sum(int(np.prod(tuple(v.shape))) for v in self.weights)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """The mask of the result, given that of the inputs: the same unless overridden."""
        return previous_mask

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.__dict__.get('_name')}, built={self.built}>"
