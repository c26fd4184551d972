"""What the arguments of a call are to a trace: tensors, which change from call to call, and all
else, which a trace is made for.

The key of a trace has two parts. The pattern: the structure of the arguments, the device and dtype
of every tensor, the value of everything that is no tensor. And the shapes of the tensors.

The arguments `(x, 2, [w, 1.5])`, with float32 tensors of the shapes [2, 3] and [3, 4], have

    pattern  (CPU:0, float32 on CPU:0, int, 2, list, 2, float32 on CPU:0, float, '0x1.8p+0')
    shapes   ((2, 3), (3, 4))
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.device import current_device, others
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Readable, Tensor
from gtape.core.type_specs import CompositeSpec, TensorSpec, TypeSpec
from gtape.core.variable import is_variable

#: Types whose values are compared by `==`; a value of another of these types is another key.
#: Floats are none of them: 0.0 == -0.0, which are other numbers, and nan is not equal to itself.
PLAIN = frozenset({int, bool, str, bytes, type(None), type(...)})

#: How deep an argument may nest: well below what ends Python's stack.
_DEEPEST = 200


class Arguments:
    """The arguments of a call, and what a trace is found by.

    `tensors` has the tensors in order; where a function is traced for specs, the specs.
    """

    __slots__ = ("args", "kwargs", "pattern", "shapes", "tensors")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, object]) -> None:
        self.args = args
        self.kwargs = kwargs
        pattern: list[Any] = [current_device()]
        self.tensors: list[Any] = []
        for value in args:
            if type(value) is EagerTensor:  # as `_walk` does, without a call
                pattern.append(value._t)
                self.tensors.append(value)
            else:
                _walk(value, pattern, self.tensors)
        for name in kwargs:
            pattern.append(name)
            _walk(kwargs[name], pattern, self.tensors)
        self.pattern = tuple(pattern)
        self.shapes: tuple[Any, ...] = tuple([
            x._a.shape if type(x) is EagerTensor else _dims(x) for x in self.tensors])

    @property
    def key(self) -> Any:
        return self.pattern, self.shapes

    def composites(self) -> list[CompositeTensor]:
        """The arguments that are sparse or ragged."""
        return [leaf for leaf in nest.flatten([*self.args, *self.kwargs.values()])
                if isinstance(leaf, CompositeTensor) and leaf._opens_]

    def specs(self) -> list[TensorSpec]:
        """The specs of the tensors; how many values a composite has is left open."""
        opened: dict[int, TensorSpec] = {}
        for leaf in self.composites():
            opened |= {id(part): spec for part, spec in zip(
                leaf._parts_(), leaf._type_spec._part_specs_())}
        return [opened.get(id(t)) or TensorSpec(dims, t.dtype)
                for dims, t in zip(self.shapes, self.tensors)]

    def replaced(self, tensors: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """The arguments with other tensors in the place of theirs."""
        fresh = iter(tensors)
        args = tuple([_replaced(value, fresh) for value in self.args])
        named = {name: _replaced(value, fresh) for name, value in self.kwargs.items()}
        return args, named


def _dims(tensor: Any) -> Any:
    return tensor._a.shape if type(tensor) is EagerTensor else (
        tensor.shape.dims if isinstance(tensor, TensorSpec) else tensor.spec.shape)


def is_tensor_argument(value: object) -> bool:
    """Whether an argument is a tensor to a trace: a tensor, what becomes one, or a spec of one."""
    return isinstance(value, (Tensor, TensorSpec)) or array_like(value)


def array_like(value: object) -> bool:
    """Whether an argument becomes a tensor: NumPy's arrays and scalars, arrays on other devices."""
    return isinstance(value, (np.ndarray, np.generic)) or (
        bool(others) and any(device.owns(value) for device in others))


def _walk(value: Any, pattern: list[object], tensors: list[object], depth: int = 0) -> None:
    """Add what `value` says to the pattern and to the tensors.

    Raises:
        ValueError: it contains itself, or nests deeper than `_DEEPEST`.
    """
    kind = type(value)
    if isinstance(value, Tensor):
        pattern.append(value._t)
        tensors.append(value)
    elif kind in PLAIN:
        pattern += (kind, value)
    elif kind is float or kind is complex:
        pattern += _exact(value)
    elif isinstance(value, Mapping):
        # With its type: 1 and True are equal keys of dicts, and other arguments.
        pattern += (kind, tuple([(type(name), name) for name in value]))
        if depth == _DEEPEST:
            raise nest.too_deep(value, _DEEPEST, "an argument of a tf.function")
        for name in nest.sorted_keys(value):
            _walk(value[name], pattern, tensors, depth + 1)
    elif nest.is_nested(value):
        pattern += (kind, len(value))
        if depth == _DEEPEST:
            raise nest.too_deep(value, _DEEPEST, "an argument of a tf.function")
        for item in value:
            _walk(item, pattern, tensors, depth + 1)
    elif isinstance(value, TensorSpec):
        pattern.append(current_device().typed(value.dtype))
        tensors.append(value)
    elif isinstance(value, CompositeTensor):
        pattern += (kind, value._frame_())
        for part in value._parts_():
            _walk(part, pattern, tensors)
    elif isinstance(value, CompositeSpec):
        pattern += (value.value_type, value._frame_())
        for spec in value._part_specs_():
            _walk(spec, pattern, tensors)
    elif is_variable(value):
        pattern += (kind, object_key(value._resource_()))
    elif hasattr(kind, "_walked_"):
        pattern += (kind, value.ended)
        _walk(value.elements, pattern, tensors, depth)
    elif kind is slice:
        pattern.append(kind)
        for item in (value.start, value.stop, value.step):
            _walk(item, pattern, tensors)
    elif array_like(value):
        _walk(convert(value), pattern, tensors)
    else:
        pattern += _exact(value)


def _exact(value: Any) -> tuple[object, ...]:
    """The key of a Python object with its type: its value where its class compares values, else its
    identity. What `==` takes for equal, 1 and 1.0, or 0.0 and -0.0, has different keys."""
    kind = type(value)
    # The text tells 0.0 from -0.0, and that of nan is equal to itself.
    if isinstance(value, float):
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    # Compared or hashed by identity, and so is its key.
    if kind.__eq__ is object.__eq__ or kind.__hash__ is object.__hash__:
        return kind, object_key(value)
    try:
        hash(value)
    except TypeError:
        return kind, object_key(value)
    if isinstance(value, (tuple, frozenset)):
        whole = tuple if isinstance(value, tuple) else frozenset
        return kind, whole(map(_exact, value))
    if is_dataclass(value):
        return kind, tuple([_exact(getattr(value, f.name)) for f in fields(value)]), value
    return kind, value


def _replaced(value: Any, fresh: Iterator[object]) -> Any:
    """`value` with the next of `fresh` wherever `_walk` finds a tensor."""
    if isinstance(value, (Tensor, TensorSpec)):
        return next(fresh)
    if type(value) in PLAIN:
        return value
    if nest.is_nested(value):
        return nest.map_structure(lambda leaf: _replaced(leaf, fresh), value)
    if isinstance(value, CompositeTensor):
        return value._of_(value._frame_(), [next(fresh) for _ in value._parts_()])
    if isinstance(value, CompositeSpec):
        return value.value_type._of_(  # type: ignore[attr-defined]
            value._frame_(), [next(fresh) for _ in value._part_specs_()])
    if type(value) is slice:
        return slice(*(_replaced(item, fresh) for item in (value.start, value.stop, value.step)))
    if is_variable(value):
        return value
    if hasattr(type(value), "_walked_"):
        return value.replaced(_replaced(value.elements, fresh))
    return next(fresh) if array_like(value) else value


def named_leaves(names: Sequence[str], arguments: Arguments) -> Iterator[tuple[str, object]]:
    """Every leaf of the arguments with what users call it: x, x[0], x['a']."""
    for name, value in zip(names, arguments.args):
        yield from _leaves(name, value)
    for name, value in arguments.kwargs.items():
        yield from _leaves(name, value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name in nest.sorted_keys(value):
            yield from _leaves(f"{path}[{name!r}]", value[name])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value):
            yield from _leaves(f"{path}.{name}", item)
    elif nest.is_nested(value):
        for i, item in enumerate(value):
            yield from _leaves(f"{path}[{i}]", item)
    else:
        yield path, value


def fit_to_spec(value: Any, spec: Any, path: str, owner: str) -> Any:
    """`value` as the tensors that a nest of TensorSpecs describes.

    Raises:
        TypeError: it does not fit.
    """
    if isinstance(spec, TensorSpec):
        return _fitted_tensor(value, spec, path, owner)
    if not nest.is_nested(spec):
        if spec.is_compatible_with(value):
            return value
        raise TypeError(f"{owner}: argument '{path}' must be {spec!r}; got {shown(value)}")
    if not nest.is_nested(value) or isinstance(spec, Mapping) != isinstance(value, Mapping):
        raise TypeError(f"{owner}: argument '{path}' must be a {type(spec).__name__}; got "
                        f"{type(value).__name__}")
    if isinstance(spec, Mapping):
        if set(spec) != set(value):
            raise TypeError(f"{owner}: argument '{path}' must have the keys {sorted(spec)}; got "
                            f"{sorted(value)}")
        return type(value)(
            (k, fit_to_spec(value[k], spec[k], f"{path}[{k!r}]", owner)) for k in value)
    if len(spec) != len(value):
        raise TypeError(f"{owner}: argument '{path}' must have {len(spec)} items; got "
                        f"{len(value)}")
    items = [fit_to_spec(v, s, f"{path}[{i}]", owner) for i, (v, s) in enumerate(zip(value, spec))]
    return nest.pack_sequence_as(spec, nest.flatten(items))


def _fitted_tensor(value: object, spec: TensorSpec, path: str, owner: str) -> Any:
    if isinstance(value, TensorSpec):
        tensor: Any = value
    else:
        try:
            tensor = convert(value, None if isinstance(value, (Tensor, Readable))
                             else spec.dtype)
        except (ValueError, TypeError) as error:
            raise TypeError(f"{owner}: argument '{path}' must be {describe(spec)}; got "
                            f"{shown(value)} ({error})") from None
    if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(_dims(tensor)):
        advice = ("; write tf.cast(value, tf." + spec.dtype.name + ")"
                  if tensor.dtype is not spec.dtype else "")
        raise TypeError(f"{owner}: argument '{path}' must be {describe(spec)}; "
                        f"got {describe(tensor)}{advice}")
    return tensor


def describe(value: Any) -> str:
    """The dtype and shape of a tensor or spec, for messages."""
    dims = _dims(value)
    return f"{value.dtype.name} {'of any shape' if dims is None else list(dims)}"


def specs_of(signature: Any) -> list[TensorSpec]:
    """The TensorSpecs of an input_signature, in the order in which `_walk` finds the tensors."""
    specs: list[TensorSpec] = []
    for spec in nest.flatten(list(signature)):
        if isinstance(spec, TensorSpec):
            specs.append(spec)
        elif isinstance(spec, CompositeSpec):
            specs += spec._part_specs_()
    return specs


#: The identities in use, by the id of their object.
_known: dict[int, ObjectKey] = {}


class ObjectKey:
    """The key of one object. Unlike `id()` it is never reused.

    `watchers` are told when the object is gone: no call can have this key again.
    """

    __slots__ = ("__weakref__", "reference", "watchers")

    def __init__(self, target: object) -> None:
        self.watchers: weakref.WeakSet[Any] = weakref.WeakSet()
        key = id(target)

        def gone(_: Any, known: Any = _known) -> None:  # a global is None when Python ends
            if known.get(key) is self:
                del known[key]
            for watcher in list(self.watchers):
                watcher.forget(self)

        try:
            #: Gives the object, None when it is gone.
            self.reference: Any = weakref.ref(target, gone)
        except TypeError:
            # It takes no weak reference, so that only holding it keeps its id from being reused.
            self.reference = lambda: target

    @property
    def target(self) -> Any:
        return self.reference()


def object_key(value: object) -> ObjectKey:
    """The key of `value`: the same one every time."""
    key = _known.get(id(value))
    # An id is used again when its object is gone.
    if key is None or key.target is not value:
        key = _known[id(value)] = ObjectKey(value)
    return key


CONTAINERS = frozenset({tuple, list, dict})
#: Deeper arguments are found by their full pattern, which also refuses those that hold themselves.
_FAST_DEPTH = 8


def take_apart(value: Any, parts: list[object], tensors: list[object], depth: int = 0) -> bool:
    """Append what tells `value` from other arguments to `parts`, and its tensors to `tensors`.

    Returns:
        False if something in it takes the long way: only its full pattern tells what it is.
    """
    kind = type(value)
    if kind is EagerTensor:
        parts.append(value._t)
        parts.append(value._a.shape)
        tensors.append(value)
    elif kind in PLAIN:
        parts.append(kind)
        parts.append(value)
    elif depth == _FAST_DEPTH:
        return False
    elif kind is tuple or kind is list:
        parts.append(kind)
        parts.append(len(value))
        for item in value:
            if not take_apart(item, parts, tensors, depth + 1):
                return False
    # Of other keys, 1 and 1.0 and True would be one here.
    elif kind is dict and all(type(name) is str for name in value):
        parts.append(kind)
        parts.append(tuple(value))
        for name in nest.sorted_keys(value):
            if not take_apart(value[name], parts, tensors, depth + 1):
                return False
    else:
        return False
    return True


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Binding:
    """The parameters of a function, and of the method of an object where `bound` is true.

    Args:
        input_signature: nests of TensorSpecs for the first parameters, but for one named `self`:
            a method is decorated before it is bound.

    Raises:
        TypeError: the input_signature does not fit the parameters.
    """

    def __init__(self, function: Callable[..., Any], name: str, input_signature: Any,
                 bound: bool) -> None:
        self.name = name
        self.input_signature = input_signature
        try:
            signature = inspect.signature(function)
        # Some callables of C have no signature that Python can tell.
        except (TypeError, ValueError):
            signature = inspect.signature(lambda *args, **kwargs: None)
        parameters = list(signature.parameters.values())[int(bound):]
        self.signature = inspect.Signature(parameters)
        self._simple = len(parameters) if all(
            p.kind in _POSITIONAL for p in parameters) else -1
        #: How many of the first parameters the input_signature leaves out.
        self._left_out = int(input_signature is not None and bool(parameters)
                             and parameters[0].name == "self" and parameters[0].kind in _POSITIONAL)
        self._check_signature(parameters[self._left_out:])

    def _check_signature(self, parameters: Sequence[inspect.Parameter]) -> None:
        if self.input_signature is None:
            return
        if not isinstance(self.input_signature, (list, tuple)):
            raise TypeError(f"{self.name}: input_signature must be a list of TensorSpecs, one for "
                            f"each parameter; got {shown(self.input_signature)}")
        wrong = [s for s in nest.flatten(list(self.input_signature))
                 if not isinstance(s, TypeSpec)]
        if wrong:
            raise TypeError(f"{self.name}: input_signature must hold TensorSpecs, such as "
                            f"tf.TensorSpec([None, 3], tf.float32); got {shown(wrong[0])}")
        count = len(self.input_signature)
        named = [p for p in parameters if p.kind in _POSITIONAL]
        if count > len(named) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            raise TypeError(f"{self.name}{self.signature} has {len(named)} positional parameters; "
                            f"input_signature describes {count}")
        rest = [p.name for p in (*named[count:], *(p for p in parameters
                                                   if p.kind is p.KEYWORD_ONLY))
                if p.default is p.empty]
        if rest:
            raise TypeError(f"{self.name}: input_signature must describe every parameter without "
                            f"a default; it says nothing of {', '.join(rest)}")

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any],
                 ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in one form however they were given: positional ones by position, with
        the defaults, and as tensors where the input_signature describes them.

        Raises:
            TypeError: they do not fit the parameters or the input_signature.
        """
        # The usual call: all parameters by position, and nothing to bind, which takes microseconds.
        if self.input_signature is None and not kwargs and len(args) == self._simple:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        if self.input_signature is None:
            return bound.args, bound.kwargs
        return self._fitted(bound.args, bound.kwargs), bound.kwargs

    def _fitted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names, count = self.names(len(args))[self._left_out:], len(self.input_signature)
        left_out, args = args[:self._left_out], args[self._left_out:]
        if len(args) < count:
            raise TypeError(f"{self.name}: input_signature describes {count} arguments; "
                            f"got {len(args)}")
        rest = dict(zip(names[count:], args[count:])) | kwargs
        extra = [name for name, value in rest.items() if value is not self._default(name)]
        if extra:
            raise TypeError(f"{self.name}: input_signature describes {count} arguments; got "
                            f"'{extra[0]}' as well")
        fit = [fit_to_spec(value, spec, name, self.name)
               for value, spec, name in zip(args, self.input_signature, names)]
        return (*left_out, *fit, *args[count:])

    def _default(self, name: str) -> Any:
        parameter = self.signature.parameters.get(name)
        return inspect.Parameter.empty if parameter is None else parameter.default

    def names(self, count: int) -> list[str]:
        """The names of `count` positional arguments."""
        names: list[str] = []
        for p in self.signature.parameters.values():
            if p.kind in _POSITIONAL:
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
        return names[:count]
