"""Sources: datasets of values that are there already, and of what a Python function yields."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import flag, integer, number_dtype, specs_of
from gtape.data.base import INFINITE_CARDINALITY, Dataset, ReadyElements
from gtape.data.choosing import Shuffle
from gtape.data.failures import failed
from gtape.data.rows import Elements, Rows, column_of, progression
from gtape.data.stacking import row_spec, rows
from gtape.files.paths import local
from gtape.ops.arguments import as_strings, host_value


class OneElement(ReadyElements):
    """The dataset of one element."""

    def __init__(self, value: Any) -> None:
        element = elements.hosted(value)
        super().__init__([element], elements.spec_of(element))


class Slices(Dataset):
    """The rows of tensors, along their first axis."""

    def __init__(self, value: Any) -> None:
        whole = elements.hosted(value, _mapped)
        leaves = [leaf for leaf in elements.flatten(whole) if leaf is not None]
        if not leaves:
            raise ValueError("from_tensor_slices: there must be at least one tensor")
        lengths = [_length(leaf) for leaf in leaves]
        other = next((n for n in lengths if n != lengths[0]), None)
        if other is not None:
            raise ValueError(f"from_tensor_slices: Dimensions {lengths[0]} and {other} are not "
                             f"compatible: the first axes must be equally long; got {lengths}")
        self._whole, self._length = whole, lengths[0]
        self._arrays = [leaf._a for leaf in leaves] if all(
            type(leaf) is EagerTensor for leaf in elements.flatten(whole)) else None
        super().__init__(row_spec(elements.spec_of(whole), "from_tensor_slices"))

    def _elements(self) -> Elements[Any]:
        return rows(self._whole)

    def _cardinality(self) -> int:
        return self._length

    def _rows(self) -> Rows | None:
        if self._arrays is None:
            return None
        size = sum(a.nbytes // max(1, len(a)) for a in self._arrays)
        return Rows([(0, column_of(a)) for a in self._arrays], self._spec,
                    lambda: iter(_one(self._length)), size)


def _mapped(value: object) -> Any:
    """A leaf as a tensor; a memory map stays one, of which rows are read as they are wanted."""
    if isinstance(value, np.memmap) and value.dtype.isnative:
        return elements.tensor(np.asarray(value))
    return convert(value)


def _length(leaf: Any) -> int:
    if isinstance(leaf, EagerTensor):
        if leaf.ndim:
            return len(leaf._a)
    elif hasattr(leaf, "_type_spec"):
        return int(leaf.shape[0])
    raise ValueError(f"from_tensor_slices takes tensors with a first axis: Unbatching a tensor is "
                     f"only supported for rank >= 1; got {leaf}")


class Range(Dataset):
    """The numbers of a Python `range`."""

    def __init__(self, args: Any, output_type: DType | None) -> None:
        numbers = [integer(arg, "range") for arg in args]
        if not 1 <= len(numbers) <= 3:
            raise ValueError(f"range takes one to three numbers; got {len(numbers)}")
        if len(numbers) == 3 and not numbers[2]:
            raise InvalidArgumentError("range: step must be a non-zero integer")
        self._range = range(*numbers)[:(1 << 63) - 1]  # len() tells no more
        super().__init__(TensorSpec([], number_dtype(output_type, "range: output_type")))

    def _cardinality(self) -> int:
        return len(self._range)

    def _rows(self) -> Rows:
        numbers = progression(self._range.start, self._range.step)
        dtype = self._spec.dtype.np_dtype
        column = numbers if dtype == np.int64 else lambda pick: numbers(pick).astype(dtype)
        return Rows([(0, column)], self._spec, lambda: iter(_one(len(self._range))), 8)


def _one(length: int) -> list[tuple[range]]:
    """The chunks of so many rows in order."""
    return [(range(length),)] if length else []


class Counter(Dataset):
    """start, start + step, ... without end."""

    def __init__(self, start: Any, step: Any, dtype: Any) -> None:
        self._start, self._step = integer(start, "counter"), integer(step, "counter")
        super().__init__(TensorSpec([], number_dtype(dtype, "counter: dtype")))

    def _iterate(self) -> Elements[Any]:
        dtype, low = self._spec.dtype.np_dtype, -(1 << 63)
        # int64 goes over into negative numbers as in TensorFlow; NumPy would raise.
        return (elements.tensor(np.asarray((n - low) % (1 << 64) + low, np.int64).astype(dtype))
                for n in itertools.count(self._start, self._step))

    def _cardinality(self) -> int:
        return INFINITE_CARDINALITY


def listed(pattern: TensorLike, shuffle: bool | None, seed: Any) -> Dataset:
    """The dataset of the files that match, found now."""
    given = host_value(as_strings(pattern, "list_files: file_pattern"), "list_files: file_pattern")
    patterns = [local(p) for p in given.reshape(-1)]
    # A set, for patterns may overlap; sorted, for systems list folders in any order.
    names = sorted({os.fsencode(name) for p in patterns for name in glob.glob(p)})
    if not names:
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(patterns)}")
    files = Slices(np.array(names, object))
    if shuffle is None or flag(shuffle, "list_files: shuffle"):
        return Shuffle(files, len(names), seed, True)
    return files


_END = object()


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
        items = self._started()
        fitted = self._fitted if self._single is None else self._single
        for number in itertools.count():
            try:
                item = next(items, _END)
                if item is _END:
                    return
                element = fitted(item)
            except Exception as error:
                raise failed(error, "from_generator", number) from error
            yield element

    def _started(self) -> Iterator[Any]:
        """What the function gives for a new pass."""
        # Not the items: what goes wrong while they are made is placed by `_iterate`, with a number.
        try:
            given = self._function(*self._args)
            if not isinstance(given, Iterable) and not hasattr(given, "__getitem__"):
                raise TypeError(f"`generator` must return an iterable when it is called; got "
                                f"{shown(given)}")
            return iter(given)
        except TypeError as error:
            raise failed(error, "from_generator") from error

    def _fitted(self, item: Any) -> Any:
        """What was yielded, as an element."""
        values = elements.parts_like(item, self._spec, _unlike)
        return self._pack([fit(value) for value, fit in zip(values, self._fits)])


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
        # A copy: generators often yield one array again and again, and write into it between.
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
        tensor = _tensor(value, spec)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`generator` yielded an element that could not be converted to the "
                        f"expected type. The expected type was {spec.dtype.name}, but the yielded "
                        f"element was {shown(value)} ({error}).") from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise TypeError(f"`generator` yielded an element of shape {tensor.shape} where an element "
                        f"of shape {spec.shape} was expected.")
    return tensor


def _tensor(value: Any, spec: TensorSpec) -> EagerTensor:
    kind = type(value)
    if (kind is int and spec.dtype.is_integer) or (kind is float and spec.dtype.is_floating):
        try:
            return elements.tensor(np.array(value, spec.dtype.np_dtype))
        except OverflowError:
            raise ValueError(f"it is beyond the range of {spec.dtype.name}") from None
    # TensorFlow casts the arrays of generators as np.asarray(x, dtype) does, also 1.5 to an
    # integer; `convert` would refuse.
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiub" and (
            value.dtype != spec.dtype.np_dtype):
        if spec.dtype.name == "string":
            raise TypeError("numbers are no strings")
        return elements.tensor(np.asarray(value).astype(spec.dtype.np_dtype))
    return elements.on_host(convert(value, spec.dtype))


def spec_of_arguments(signature: Any, types: Any, shapes: Any) -> Any:
    """The spec that `output_signature`, or `output_types` and `output_shapes`, give."""
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

    def refusal(part: Any, like: Any) -> InvalidArgumentError:
        return InvalidArgumentError(f"from_generator: output_shapes must have the structure of "
                                    f"output_types, {like}; got {shown(part)}")

    flat = elements.parts_like(shapes, types, refusal)
    return nest.pack_sequence_as(types, [
        TensorSpec(TensorShape(shape), dtype) for shape, dtype in zip(flat, nest.flatten(types))])
