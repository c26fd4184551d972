"""Values that cross the border of a branch or loop: nests whose numbers become tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gtape.autograph.state import UNSET
from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.formatting import shown
from gtape.core.tensor import Readable, Tensor
from gtape.ops.control.tensor_array import TensorArray

_NUMBERS = (bool, int, float, complex)


def leaves(value: object) -> list[object]:
    if value is UNSET:
        return []
    try:
        return nest.flatten(value)
    except TypeError:
        return [value]


def is_tensor_like(leaf: object) -> bool:
    """Whether a leaf is a number, array, tensor or Variable."""
    if isinstance(leaf, (Tensor, np.ndarray, np.generic)):
        return isinstance(leaf, Tensor) or leaf.dtype.kind in "biufc"
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
