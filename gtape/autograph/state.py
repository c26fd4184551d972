"""What the blocks of a choice or loop may change: variables, attributes and items, and the values
in them that cross the border of a block: nests whose numbers become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.formatting import shown
from gtape.core.tensor import Readable, Tensor
from gtape.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

class Unset:
    """Stands for a variable that has no value."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Any = Unset()


@dataclass
class _Variable:
    """A local variable, by its cell."""

    cell: CellType
    name: str
    kind: str

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:  # an empty cell: the variable is not set
            return UNSET

    def set(self, value: Any) -> None:
        if value is not UNSET:
            self.cell.cell_contents = value
        elif self.get() is not UNSET:
            del self.cell.cell_contents


@dataclass
class _Global:
    """A global variable."""

    space: dict[str, Any]
    name: str
    # Functions anywhere may read it.
    kind = "weak"

    def get(self) -> Any:
        return self.space.get(self.name, UNSET)

    def set(self, value: Any) -> None:
        if value is not UNSET:
            self.space[self.name] = value
        else:
            self.space.pop(self.name, None)


@dataclass
class _Attribute:
    """An attribute of an object."""

    holder: Any
    attribute: str
    name: str
    # Who else holds the object is not known.
    kind = "live"

    def get(self) -> Any:
        return getattr(self.holder, self.attribute, UNSET)

    def set(self, value: TensorLike) -> None:
        if value is not UNSET:
            setattr(self.holder, self.attribute, value)
        elif self.get() is not UNSET:
            delattr(self.holder, self.attribute)


@dataclass
class _Items:
    """The items of a list or dict, as a copy of it."""

    holder: Any
    name: str
    kind = "live"

    def get(self) -> Any:
        # The block writes into the container itself: what was in it has to outlive that.
        return list(self.holder) if isinstance(self.holder, list) else dict(self.holder)

    def set(self, value: Any) -> None:
        if isinstance(self.holder, list):
            self.holder[:] = value  # in place, for others hold the list too
        else:
            self.holder.clear()  # keys that only the block added go
            self.holder.update(value)


def _place(kind: str, holder: Callable[[], Any] | None, attribute: str, text: str) -> Any:
    """A place outside the variables, or None where it is made by the block itself."""
    if holder is None:
        raise ValueError(f"{text} is assigned to where the condition is a traced tensor. Give the "
                         f"object that holds it a name before, so that both outcomes can be "
                         f"joined")
    try:
        found = holder()
    except (NameError, AttributeError):
        return None
    if kind == "attribute":
        return _Attribute(found, attribute, text)
    if isinstance(found, (list, dict)):
        return _Items(found, text)
    raise ValueError(f"items of {text}, a {type(found).__name__}, are assigned to where the "
                     f"condition is a traced tensor: only lists and dicts can be joined. For "
                     f"tensors use tf.tensor_scatter_nd_update or tf.where")


class State:
    """What the blocks of one statement may change.

    `variables` is a function that reads the local variables and is never called: its closure has
    their cells. `kinds`, in the order of their names, says who reads a variable later: 'live' the
    statements behind; 'then', 'else' those that one branch leads to; 'open' only statements that
    are reached by paths on which it is set; 'weak' perhaps a function or a handler; 'dead' nobody.
    """

    def __init__(self, variables: Callable[[], Any], kinds: tuple[str, ...],
                 shared: tuple[str, ...], objects: tuple[Any, ...]) -> None:
        self._variables = variables
        self._kinds = dict(zip(variables.__code__.co_freevars, kinds))
        self._shared = shared
        self._objects = objects

    def slots(self) -> list[Any]:
        """The places, found at the time of the call."""
        function: Any = self._variables
        cells = zip(function.__code__.co_freevars, function.__closure__ or ())
        found: list[Any] = [_Variable(cell, name, self._kinds[name]) for name, cell in cells]
        found += [_Global(function.__globals__, name) for name in self._shared]
        return found + [p for p in (_place(*o) for o in self._objects) if p is not None]


class Snapshot:
    """The places of a state, and their values when the statement began."""

    def __init__(self, state: State | None) -> None:
        self.slots = [] if state is None else state.slots()
        self.read = [s for s in self.slots if s.kind != "dead"]
        self._start = [s.get() for s in self.slots]
        self.start = [s.get() for s in self.read]

    def restore(self) -> None:
        for slot, value in zip(self.slots, self._start):
            slot.set(value)

    def values(self) -> list[Any]:
        return [s.get() for s in self.read]

    def store(self, values: list[Any]) -> None:
        """Set those that are read later; the others are unset, since they have no one value."""
        for slot in self.slots:
            if slot.kind == "dead":
                slot.set(UNSET)
        for slot, value in zip(self.read, values):
            slot.set(value)


_NUMBERS = (bool, int, float, complex)


def leaves(value: object) -> list[object]:
    if value is UNSET:
        return []
    try:
        return nest.flatten(value)
    except TypeError:  # keys of a dict that cannot be sorted: one leaf
        return [value]


def is_tensor_like(leaf: object) -> bool:
    """Whether a leaf is a number, array, tensor or Variable."""
    if isinstance(leaf, (Tensor, np.ndarray, np.generic)):
        return isinstance(leaf, Tensor) or leaf.dtype.kind in "biufc"
    # `type`: a member of an IntEnum is more than its number, and stays Python's.
    return type(leaf) in _NUMBERS or isinstance(leaf, Readable)


def crosses(leaf: object) -> bool:
    """Whether a leaf is passed on: a number, a tensor, a TensorArray. Others stay as they are."""
    return is_tensor_like(leaf) or isinstance(leaf, TensorArray)


def as_tensor(leaf: object) -> Tensor:
    return leaf.together() if isinstance(leaf, TensorArray) else convert(leaf)


def in_place_of(leaf: object, tensor: Any) -> Any:
    """What `tensor`, made by `as_tensor` of a leaf like this one, stands for."""
    return leaf.like(tensor) if isinstance(leaf, TensorArray) else tensor


def same(a: Any, b: Any) -> bool:
    """Whether two values cannot be told apart, so that nothing has to be chosen."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (*_NUMBERS, str, bytes):
        # By their text: 0.0 is not -0.0, and nan is nan.
        return repr(a) == repr(b)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is dict and list(a) == list(b) and all(same(a[k], b[k]) for k in a)


def packed(structure: Any, others: Iterator[object]) -> Any:
    """`structure` with every leaf that `crosses` replaced by the next of `others`."""
    if structure is UNSET:
        return UNSET
    found = [next(others) if crosses(leaf) else leaf for leaf in leaves(structure)]
    return nest.pack_sequence_as(structure, found) if nest.is_nested(structure) else found[0]


def described(leaf: object) -> str:
    """A leaf, for messages."""
    if leaf is None:
        return "None"
    return str(as_tensor(leaf).spec) if is_tensor_like(leaf) else f"{shown(leaf)}"


def check_leaf(name: str, a: object, b: object, where: str, sides: tuple[str, str]) -> None:
    """Two leaves that are to become one must be alike.

    Raises:
        ValueError: one is None, or the shapes differ.
        TypeError: the dtypes differ, or one is no tensor.
    """
    if is_tensor_like(a) and is_tensor_like(b):
        first, second = as_tensor(a).spec, as_tensor(b).spec
        both = f"got {first} {sides[0]} and {second} {sides[1]}"
        if first.dtype is not second.dtype:
            raise TypeError(f"{where}: {name} must have one dtype; {both}. Write "
                            f"tf.cast(value, tf.{first.dtype.name})")
        if first.shape != second.shape:
            raise ValueError(f"{where}: {name} must have one shape; {both}. Use tf.reshape or "
                             f"tf.broadcast_to, or tf.where to choose elements")
        return
    if same(a, b) or (isinstance(a, TensorArray) and isinstance(b, TensorArray)):
        return
    found = f"got {described(a)} {sides[0]} and {described(b)} {sides[1]}"
    if a is None or b is None:
        raise ValueError(f"{where}: {name} must be a tensor, or None, both times; {found}")
    raise TypeError(f"{where}: {name} must be a tensor both times, because the condition is a "
                    f"traced tensor; {found}")


def check(name: str, a: object, b: object, where: str, sides: tuple[str, str]) -> None:
    """Two values that are to become one must nest alike, with leaves alike.

    Raises:
        ValueError, TypeError: as `check_leaf`; the structures differ.
    """
    if nest.is_nested(a) != nest.is_nested(b):
        raise ValueError(f"{where}: {name} must have one structure; got {shown(a)} {sides[0]} and "
                         f"{shown(b)} {sides[1]}")
    if nest.is_nested(a):
        try:
            nest.assert_same_structure(a, b)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{where}: {name} must have one structure: {error}") from None
    for x, y in zip(leaves(a), leaves(b)):
        check_leaf(name, x, y, where, sides)
