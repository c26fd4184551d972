"""variable[…].assign(value): a slice of a variable remembers what it is a slice of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gtape.core.convert import convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.sites import here
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import ResourceVariable, Variable
from gtape.ops.indexing import getitem


class SliceOf(NamedTuple):
    """What a tensor was sliced from, and the user's line that did it."""

    variable: ResourceVariable
    key: Any
    code: Any
    offset: int


def _getitem(self: Variable, key: Any) -> Tensor:
    """variable[key]: a tensor, with `assign`, `assign_add` and `assign_sub` for that slice."""
    made = getitem(self, key)
    if type(made) is EagerTensor:
        remember(made, self, key)
    return made


def remember(piece: EagerTensor, variable: Variable, key: Any) -> None:
    """Let `piece` be assigned to: it is variable[key]."""
    piece._origin = SliceOf(variable._resource_(), key, *here())


def _entry(e: Any) -> Any:
    """One entry of an index for the variable's array."""
    if isinstance(e, Variable):
        e = e._read_()
    if isinstance(e, Tensor):
        return int(e._exit("an index")) if not e.ndim else e._array_()
    if isinstance(e, slice):
        return slice(*[b if b is None else int(b) for b in (e.start, e.stop, e.step)])
    return np.asarray(e) if isinstance(e, list) else e


def _write(piece: SliceOf, value: Any, how: str) -> Any:
    """The variable after its slice was assigned, or shifted by, `value`."""
    state = piece.variable
    old = state._value
    given = convert_like(value, old._t, f"variable[…].{how}")
    if given._t is not old._t:
        raise InvalidArgumentError(f"variable[…].{how}: the Variable '{state.name}' holds "
                                   f"{old._t}, the value is {given._t}; use tf.cast, or "
                                   f"value.gpu() or value.cpu()")
    key = tuple(map(_entry, piece.key)) if isinstance(piece.key, tuple) else _entry(piece.key)
    array = old._t.xp.array(old._array_())
    update = given._array_()
    with np.errstate(all="ignore"), old._t.device.scope():
        try:
            if how == "assign":
                array[key] = update
            elif how == "assign_add":
                array[key] = array[key] + update
            else:
                array[key] = array[key] - update
        except ValueError:
            raise InvalidArgumentError(f"variable[…].{how}: the slice has shape "
                                       f"{list(array[key].shape)}, the value {given.spec}; the "
                                       f"shapes must be equal, or the value broadcast") from None
    return state._written(EagerTensor(array, old._t), True, given, state)


def _method(how: str) -> property:
    def bound(self: EagerTensor) -> Callable[..., Any]:
        piece = getattr(self, "_origin", None)
        if type(piece) is not SliceOf:
            raise AttributeError(how)

        def write(value: Any, name: str | None = None) -> Any:
            return _write(piece, value, how)

        return write

    return property(bound, doc="For a slice of a variable: write to that slice of the variable.")


for _how in ("assign", "assign_add", "assign_sub"):
    setattr(EagerTensor, _how, _method(_how))
Variable.__getitem__ = _getitem  # type: ignore[attr-defined, misc]
