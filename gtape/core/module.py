"""Module: an object whose variables, and those of the modules it holds, can be listed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gtape.core import nest
from gtape.core.formatting import shown
from gtape.core.variable import is_variable, name_scope

_Method = TypeVar("_Method", bound=Callable[..., Any])
_WORD = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")


def snake_case(name: str) -> str:
    """`MyDense2D` as `my_dense2d`."""
    return _WORD.sub(r"_\1", name).lower()


def is_layer(value: object) -> bool:
    """Whether `value` is a layer or a model of Keras, which is not imported for this."""
    return hasattr(type(value), "_flatten_layers")


class Module:
    """A base class that finds the variables in the attributes of its instances.

    Attributes are walked in the order of their names, containers included; the variables of a
    module come before those of the modules it holds; each is listed once. Layers and models of
    Keras are modules here, whose variables come in Keras' order.

    Args:
        name: a Python identifier; the class name in snake case unless given.

    Raises:
        ValueError: the name is not an identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        name = snake_case(type(self).__name__) if name is None else name
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"the name of a Module must be a Python identifier, such as a class "
                             f"name; got {shown(name)}")
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    def _given(self, attribute: str) -> Any:
        try:
            return self.__dict__[attribute]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no name yet: call super().__init__() first in its "
                f"__init__") from None

    @property
    def name(self) -> str:
        """The name given, or the class name in snake case."""
        return self._given("_name")

    @property
    def name_scope(self) -> name_scope:
        """A `tf.name_scope`: variables made in it are called `name/…`."""
        return name_scope(self._given("_scope_name"))

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module and of those it holds."""
        return tuple(self._flatten(is_variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that tapes watch by themselves."""
        return tuple(self._flatten(lambda v: is_variable(v) and v.trainable))

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables made with `trainable=False`."""
        return tuple(self._flatten(lambda v: is_variable(v) and not v.trainable))

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The modules held by this one, and by those, layers and models of Keras among them."""
        return tuple(self._flatten(lambda v: isinstance(v, Module) or is_layer(v)))

    def _flatten(self, predicate: Callable[[Any], bool], recursive: bool = True,
                 ) -> Iterator[object]:
        """The leaves of the attributes that satisfy `predicate`, each once."""
        return _walk(self, predicate, recursive, {id(self)})

    @classmethod
    def with_name_scope(cls, method: _Method) -> _Method:
        """Decorator: the method runs inside the module's name scope."""
        @functools.wraps(method)
        def scoped(self: Any, *args: object, **kwargs: object) -> str:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped  # type: ignore[return-value]


def _identity(leaf: Any) -> int:
    """What makes two leaves one: the state behind variables, the object itself otherwise."""
    return id(leaf._resource_()) if is_variable(leaf) else id(leaf)


def _walk(module: object, predicate: Callable[[Any], bool], recursive: bool, seen: set[int],
          ) -> Iterator[object]:
    # Modules wait until the variables beside them are listed, which come first in TensorFlow.
    held = []
    attributes = vars(module)
    # As TensorFlow lists them.
    for name in sorted(attributes):
        try:
            leaves = nest.flatten(attributes[name])
        except TypeError as error:
            raise ValueError(f"the attribute '{name}' of {type(module).__name__} cannot be "
                             f"searched for variables: {error}") from error
        for leaf in leaves:
            key = _identity(leaf)
            if key in seen:
                continue
            seen.add(key)
            if predicate(leaf):
                yield leaf
            if recursive and (isinstance(leaf, Module) or is_layer(leaf)):
                held.append(leaf)
    for submodule in held:
        inside = _walk if isinstance(submodule, Module) else _walk_layer
        yield from inside(submodule, predicate, recursive, seen)


def _walk_layer(layer: Any, predicate: Callable[[Any], bool], recursive: bool, seen: set[int],
                ) -> Iterator[object]:
    """The variables of a layer and the layers inside. Keras keeps lists of both."""
    for leaf in (*layer.variables, *layer._flatten_layers(include_self=False)):
        key = _identity(leaf)
        if key not in seen:
            seen.add(key)
            if predicate(leaf):
                yield leaf
