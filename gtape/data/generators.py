"""Generators: datasets of what a Python function yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import specs_of
from gtape.data.dataset import Dataset
from gtape.data.failures import failed


class Generated(Dataset):
    """The items of an iterable that a function gives for every pass, as elements of a spec."""

    def __init__(self, function: Callable[..., Any], spec: Any, args: tuple[Any, ...]) -> None:
        if not callable(function):
            raise TypeError("`generator` must be a Python callable: pass the function, not what it "
                            "returns")
        super().__init__(spec)
        self._function, self._args = function, args
        self._fits = [_fit(leaf) for leaf in nest.flatten(spec)]
        self._pack = elements.packer(spec)
        self._single = None if nest.is_nested(spec) else self._fits[0]

    def _iterate(self) -> Elements[Any]:
        number, single = 0, self._single
        items = self._started()
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                raise failed(error, "from_generator", number) from error
            try:
                made = self._fitted(item) if single is None else single(item)
            except Exception as error:
                raise failed(error, "from_generator", number) from error
            yield made
            number += 1

    def _started(self) -> Iterator[Any]:
        """What the function gives for a new pass.

        Raises:
            InvalidArgumentError: nothing that can be gone over.
        """
        try:
            given = self._function(*self._args)
            if not isinstance(given, Iterable) and not hasattr(given, "__getitem__"):
                raise TypeError(f"`generator` must return an iterable when it is called; got "
                                f"{shown(given)}")
            return iter(given)
        except TypeError as error:
            raise failed(error, "from_generator") from error

    def _fitted(self, item: Any) -> Any:
        """What was yielded, as an element.

        Raises:
            TypeError: it does not fit the spec.
        """
        values = _arranged(item, self._spec)
        return self._pack([fit(value) for value, fit in zip(values, self._fits)])


def _arranged(item: Any, spec: Any) -> list[Any]:
    """The parts of what was yielded that are the leaves of `spec`."""
    if not nest.is_nested(spec):
        return [item]
    if isinstance(spec, dict):
        if not isinstance(item, dict) or set(item) != set(spec):
            raise _unlike(item, spec)
        return [leaf for key in nest.sorted_keys(spec) for leaf in _arranged(item[key], spec[key])]
    if not isinstance(item, (tuple, list)) or len(item) != len(spec):
        raise _unlike(item, spec)
    return [leaf for part, like in zip(item, spec) for leaf in _arranged(part, like)]


def _unlike(item: Any, spec: Any) -> TypeError:
    return TypeError(f"`generator` yielded an element that did not match the expected structure. "
                     f"The expected structure was {spec}, but the yielded element was "
                     f"{shown(item)}.")


def _fit(spec: Any) -> Callable[[Any], Any]:
    """A function that makes a leaf of a value."""
    dims = spec.shape.dims if isinstance(spec, TensorSpec) else None
    if dims is None or None in dims or spec.dtype.name == "string":
        return lambda value: _leaf(value, spec)
    dtype, array_type = spec.dtype.np_dtype, CPU.typed(spec.dtype)

    def fitted(value: Any) -> Any:
        if type(value) is np.ndarray and value.shape == dims and value.dtype == dtype:
            return EagerTensor(value.copy(), array_type)
        return _leaf(value, spec)

    return fitted


def _leaf(value: Any, spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        if spec.is_compatible_with(value):
            return elements.on_host(value)
        raise TypeError(f"`generator` yielded {shown(value)} where {spec} was expected.")
    try:
        made = _tensor(value, spec)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`generator` yielded an element that could not be converted to the "
                        f"expected type. The expected type was {spec.dtype.name}, but the yielded "
                        f"element was {shown(value)} ({error}).") from None
    if not spec.shape.is_compatible_with(made.shape):
        raise TypeError(f"`generator` yielded an element of shape {made.shape} where an element of "
                        f"shape {spec.shape} was expected.")
    return made


def _tensor(value: Any, spec: TensorSpec) -> EagerTensor:
    kind = type(value)
    if (kind is int and spec.dtype.is_integer) or (kind is float and spec.dtype.is_floating):
        try:
            return elements.tensor(np.array(value, spec.dtype.np_dtype))
        except OverflowError:
            raise ValueError(f"it is beyond the range of {spec.dtype.name}") from None
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiub" and (
            value.dtype != spec.dtype.np_dtype):
        if spec.dtype.name == "string":
            raise TypeError("numbers are no strings")
        return elements.tensor(np.asarray(value).astype(spec.dtype.np_dtype))
    made: Any = elements.on_host(convert(value, spec.dtype))
    return made


def spec_of_arguments(signature: Any, types: Any, shapes: Any) -> Any:
    """The spec that `output_signature`, or `output_types` and `output_shapes`, give.

    Raises:
        TypeError: none of them is given, or both ways are used.
    """
    if signature is not None:
        if types is not None or shapes is not None:
            raise TypeError("The `output_types` and `output_shapes` arguments can not be used "
                            "together with the `output_signature` argument.")
        return specs_of(signature, "`output_signature`")
    if types is None:
        raise TypeError("from_generator: either `output_signature` or `output_types` must be "
                        "specified")
    types = nest.map_structure(as_dtype, types)
    if shapes is None:
        return nest.map_structure(lambda dtype: TensorSpec(None, dtype), types)
    flat = _shapes_like(types, shapes)
    return nest.pack_sequence_as(types, [
        TensorSpec(shape, dtype) for shape, dtype in zip(flat, nest.flatten(types))])


def _shapes_like(types: Any, shapes: Any) -> list[Any]:
    if not nest.is_nested(types):
        return [TensorShape(shapes)]
    keys: Any = nest.sorted_keys(types) if isinstance(types, dict) else range(len(types))
    if not nest.is_nested(shapes) or len(shapes) != len(types) or (
            isinstance(shapes, dict) != isinstance(types, dict)) or (
            isinstance(types, dict) and set(shapes) != set(types)):
        raise InvalidArgumentError(f"from_generator: output_shapes must have the structure of "
                                   f"output_types, {types}; got {shown(shapes)}")
    return [shape for key in keys for shape in _shapes_like(types[key], shapes[key])]
