"""Padding: elements of different lengths in one batch."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.device import CPU
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.batching import Batch
from gtape.data.failures import failed
from gtape.ops.arguments import as_int, as_ints, as_items


class PaddedBatch(Batch):
    """Batches whose elements are padded at their ends to one shape.

    Args:
        shapes: for every leaf the lengths to pad to; None: to the longest of the batch.
        values: for every leaf what to pad with; None: zero, or empty strings.

    Raises:
        ValueError, TypeError: these do not fit the elements.
    """

    def __init__(self, dataset: Any, size: int, shapes: Any, values: Any, drop_remainder: bool,
                 ) -> None:
        super().__init__(dataset, size, drop_remainder)
        batch_spec = self.element_spec
        specs = nest.flatten(dataset.element_spec)
        self._shapes = [_padded_shape(leaf, shape) for leaf, shape in zip(
            specs, _spread(shapes, dataset.element_spec, _is_shape, "padded_shapes"))]
        self._values = [_value(leaf, value) for leaf, value in zip(
            specs, _spread(values, dataset.element_spec, _is_value, "padding_values"))]
        self._spec = nest.pack_sequence_as(batch_spec, [
            TensorSpec([size if drop_remainder else None, *dims], leaf.dtype)
            for dims, leaf in zip(self._shapes, specs)])

    def _iterate(self) -> Elements[Any]:
        upstream = self._inputs[0]._iterate()
        number = 0
        while items := list(islice(upstream, self._size)):
            if len(items) < self._size and self._drop:
                return
            try:
                columns = zip(*[elements.flatten(item) for item in items])
                made = [_padded(column, dims, value) for column, dims, value in zip(
                    columns, self._shapes, self._values)]
            except Exception as error:
                raise failed(error, "padded_batch", number) from error
            yield nest.pack_sequence_as(items[0], made)
            number += 1

    def _rows(self) -> None:
        return None


def _is_shape(value: Any) -> bool:
    return isinstance(value, (TensorShape, EagerTensor, np.ndarray)) or (
        isinstance(value, (list, tuple)) and all(
            n is None or isinstance(n, (int, np.integer)) for n in value))


def _is_value(value: Any) -> bool:
    return not nest.is_nested(value)


def _spread(given: Any, spec: Any, single: Any, what: str) -> list[Any]:
    """One of `given` for every leaf of the elements: None for all where nothing is given, the same
    for all where one is.

    Raises:
        ValueError: it has another structure than the elements.
    """
    count = len(nest.flatten(spec))
    if given is None:
        return [None] * count
    if single(given) and (count == 1 or not nest.is_nested(given)):
        return [given] * count

    def found(part: Any, like: Any) -> list[Any]:
        if not nest.is_nested(like):
            return [part]
        keys: Any = nest.sorted_keys(like) if isinstance(like, dict) else range(len(like))
        if not nest.is_nested(part) or len(part) != len(like) or (
                isinstance(part, dict) != isinstance(like, dict)) or (
                isinstance(like, dict) and set(part) != set(like)):
            raise ValueError(f"padded_batch: {what} must have the structure of the elements, "
                             f"{spec}; got {shown(given)}")
        return [leaf for key in keys for leaf in found(part[key], like[key])]

    return found(given, spec)


def _padded_shape(spec: Any, shape: Any) -> list[int | None]:
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"Padding and padding values are supported only for tf.Tensor elements; "
                        f"got {spec}")
    if shape is None:
        if spec.shape.dims is None:
            raise ValueError("You must provide padded_shapes: the rank of a leaf is not known")
        return list(spec.shape.dims)
    dims = _lengths(shape)
    known = spec.shape.dims
    if known is not None and (len(known) != len(dims) or any(
            n is not None and m is not None and n > m for n, m in zip(known, dims))):
        raise ValueError(f"The padded shape {tuple(dims)} is not compatible with the shape "
                         f"{spec.shape} of the input component.")
    return dims


def _lengths(shape: Any) -> list[int | None]:
    """The lengths of a `padded_shapes`, None for those that are open.

    Raises:
        TypeError: it holds something else.
    """
    if isinstance(shape, TensorShape):
        return list(shape.as_list())
    what = "padded_batch: a shape of padded_shapes"
    given = as_ints(shape, what) if hasattr(shape, "dtype") else as_items(shape, what)
    found = [None if n is None else as_int(n, f"{what}: a length") for n in given]
    return [None if n is None or n < 0 else n for n in found]


def filled(shapes: Any, spec: Any, length: int) -> Any:
    """`padded_shapes` for elements of `spec`, with `length` in the place of what is open."""
    found = [_padded_shape(leaf, shape) for leaf, shape in zip(
        nest.flatten(spec), _spread(shapes, spec, _is_shape, "padded_shapes"))]
    return nest.pack_sequence_as(spec, [
        TensorShape([length if n is None else n for n in dims]) for dims in found])


def _value(spec: Any, value: Any) -> Any:
    if value is None:
        return b"" if spec.dtype.name == "string" else 0
    made = elements.hosted(value)
    if not isinstance(made, EagerTensor) or made.ndim:
        raise ValueError(f"padding_values must be scalars; got {shown(value)}")
    if made.dtype is not spec.dtype:
        if isinstance(value, EagerTensor) or hasattr(value, "dtype"):
            raise TypeError(f"padding_values must be {spec.dtype.name}; got {made.dtype.name}")
        from gtape.core.convert import convert

        made = elements.on_host(convert(value, spec.dtype, CPU))
    return made._a[()]


def _padded(leaves: Sequence[Any], dims: Sequence[int | None], value: Any) -> EagerTensor:
    shapes = [leaf._a.shape for leaf in leaves]
    if any(len(shape) != len(dims) for shape in shapes):
        raise InvalidArgumentError(f"All elements in a batch must have the same rank as the padded "
                                   f"shape; got {shapes} for {list(dims)}")
    whole = []
    for axis, length in enumerate(dims):
        longest = max(shape[axis] for shape in shapes)
        if length is not None and longest > length:
            raise InvalidArgumentError(f"Attempted to pad to a smaller size than the input "
                                       f"element: axis {axis} is {longest} long, and is to be "
                                       f"padded to {length}")
        whole.append(longest if length is None else length)
    with room_for("padded_batch", Spec((len(leaves), *whole), leaves[0].dtype)):
        array = np.full((len(leaves), *whole), value, leaves[0].dtype.np_dtype)
        for at, leaf in enumerate(leaves):
            place: Any = (at, *[slice(n) for n in leaf._a.shape])
            array[place] = leaf._a
    return EagerTensor(array, leaves[0]._t)
