"""variable[…].assign(value): a slice of a variable remembers what it is a slice of."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import here, paused
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule, Device
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import ResourceVariable, Variable
from gtape.opdef.primitive import primitive
from gtape.ops.indexing.getitem import getitem
from gtape.trace.symbolic_tensor import SymbolicTensor


class SliceOf(NamedTuple):
    """What a tensor was sliced from, and the user's line that did it."""

    variable: ResourceVariable
    key: Any
    code: Any
    offset: int


#: Slices made in traces, by id.
_traced: dict[int, tuple[Any, SliceOf]] = {}


def _getitem(self: Variable, key: object) -> Tensor:
    """variable[key]: a tensor, with `assign`, `assign_add` and `assign_sub` for that slice."""
    y = getitem(self, key)
    remember(y, self, key)
    return y


def remember(piece: TensorLike, variable: Variable, key: object) -> None:
    """Let `piece` be assigned to: it is variable[key]."""
    origin = SliceOf(variable._resource_(), key, *here())
    if type(piece) is EagerTensor:
        piece._origin = origin
        return
    number = id(piece)
    # Forgotten with the tensor: afterwards its id may be another's.
    _traced[number] = weakref.ref(piece, lambda _: _traced.pop(number, None)), origin


def _origin(piece: Tensor) -> SliceOf | None:
    if type(piece) is EagerTensor:
        origin = getattr(piece, "_origin", None)
        return origin if type(origin) is SliceOf else None
    return _traced[id(piece)][1] if id(piece) in _traced else None


class _Index(NamedTuple):
    """Where in a key the n-th index tensor stands."""

    number: int


def _frozen(entry: int | slice | Tensor | None, tensors: list[Tensor], device: Device) -> Any:
    """One entry of an index as a constant; what it cannot be is added to `tensors`."""
    if isinstance(entry, Variable):
        entry = entry._read_()
    if isinstance(entry, Tensor) and not entry.ndim and type(entry) is EagerTensor:
        return int(entry._exit("an index"))
    if isinstance(entry, slice):
        return ("slice", *[b if b is None else int(b)
                           for b in (entry.start, entry.stop, entry.step)])
    if isinstance(entry, (Tensor, list, np.ndarray)):
        if isinstance(entry, list) and not entry:
            entry = np.zeros(0, np.int32)  # an empty list would be float32, which is no index
        tensors.append(convert(entry, None, device))
        return _Index(len(tensors) - 1)
    return entry


def _thawed(key: tuple[object, ...], indices: Any) -> tuple[Any, ...]:
    return tuple([indices[e.number] if type(e) is _Index else
                  slice(*e[1:]) if type(e) is tuple else e for e in key])


@primitive(nondifferentiable=True)
def changed_piece_(xp: ArrayModule, *values: Array, key: tuple[object, ...], how: str) -> Array:
    """values[0] with values[1] assigned, or added or subtracted, at `key`; the others are the
    index arrays in it."""
    array, update = xp.array(values[0]), values[1]  # a copy: the old value stays as it is
    at = _thawed(key, values[2:])
    try:
        if how == "assign":
            # A string of rank 0 as it is: NumPy would store the array.
            array[at] = update[()]
        elif how == "assign_add":
            array[at] = array[at] + update
        else:
            array[at] = array[at] - update
    except (IndexError, ValueError) as error:
        raise InvalidArgumentError(f"variable[…].{how}: {error}") from None
    return array


@changed_piece_.infer
def _(*values: Spec, key: tuple[Any, ...], how: str) -> Spec:
    # How many a mask picks is known at the call alone.
    if any(v.dtype.is_bool for v in values[2:]):
        return values[0]
    # One byte for any shape: NumPy works out the slice's shape without the array's memory.
    blank = np.broadcast_to(np.zeros((), bool), values[0].shape)
    piece = blank[_thawed(key, [np.zeros(v.shape, np.int64) for v in values[2:]])].shape
    try:
        fits = np.broadcast_shapes(piece, values[1].shape) == piece
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgumentError(f"variable[…].{how}: the slice has shape {list(piece)}, the "
                                   f"value {values[1]}; the shapes must be equal, or the value "
                                   f"broadcast")
    return values[0]


changed_piece_.refuses = True
changed_piece_.cases = [case((4, 3), (3,), key=(1,), how="assign"),
                        case((4, 3), (2, 3), np.array([0, 2]), key=(_Index(0),), how="assign_add")]


def _write(piece: SliceOf, value: TensorLike, how: str) -> Any:
    """The variable after its slice was assigned, or shifted by, `value`."""
    state = piece.variable
    old = state._value
    given = convert_like(value, old._t, f"variable[…].{how}")
    if given._t is not old._t:
        raise InvalidArgumentError(f"variable[…].{how}: the Variable '{state.name}' holds "
                                   f"{old._t}, the value is {given._t}; use tf.cast, or "
                                   f"value.gpu() or value.cpu()")
    indices: list[Tensor] = []
    entries = piece.key if isinstance(piece.key, tuple) else (piece.key,)
    key = tuple([_frozen(e, indices, old._t.device) for e in entries])
    with paused():
        y = changed_piece_(old, given, *indices, key=key, how=how)
    return state._written(y, True, given, state)


def _method(how: str) -> property:
    def bound(self: Tensor) -> Callable[..., Any]:
        piece = _origin(self)
        if piece is None:
            raise AttributeError(how)  # hasattr says no, as for any tensor that is no slice

        def write(value: TensorLike, name: str | None = None) -> Any:
            return _write(piece, value, how)

        return write

    return property(bound, doc="For a slice of a variable: write to that slice of the variable.")


for _how in ("assign", "assign_add", "assign_sub"):
    for _class in (EagerTensor, SymbolicTensor):
        setattr(_class, _how, _method(_how))
Variable.__getitem__ = _getitem  # type: ignore[misc]
