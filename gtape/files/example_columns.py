"""The values of one feature in many serialized Examples.

Bytes are found without making messages: of each Example only where the wanted features stand, and
the numbers of all of them are then read together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.files import wire

_KINDS = {1: "string", 2: "float32", 3: "int64"}
_NUMBERS = {name: number for number, name in _KINDS.items()}
_WHAT = "bytes as an Example"


class Held(NamedTuple):
    """What a feature holds: 1 for bytes, 2 for floats, 3 for integers; and its list in bytes."""

    kind: int
    content: Any


class ExampleColumn(NamedTuple):
    """The values of a feature in all examples, one after another, and how many each has; -1 of
    those that do not have the feature."""

    values: np.ndarray
    counts: np.ndarray


class Each:
    """Examples of which each says what it holds by name."""

    def __init__(self, examples: Sequence[dict[str, Held]]) -> None:
        self.examples = examples

    @classmethod
    def of(cls, examples: Sequence[bytes], wanted: Collection[str]) -> Each:
        """Of serialized Examples the wanted features; of one that is there twice the last counts.

        Raises:
            InvalidArgumentError: the bytes are no Examples.
        """
        return cls([_held(example, wanted) for example in examples])

    def column(self, name: str, dtype: DType) -> ExampleColumn:
        """The values of a feature in all examples."""
        return column(name, dtype, [e.get(name) for e in self.examples])


def _held(example: bytes, wanted: Collection[str]) -> dict[str, Held]:
    found: dict[str, Held] = {}
    for number, kind, value in wire.fields(example, _WHAT):
        if number == 1 and kind == wire.DELIMITED:
            of_features(value, wanted, found)
    return found


def of_features(features: Any, wanted: Collection[str], found: dict[str, Held]) -> None:
    """Enter the wanted features of a serialized Features message into `found`."""
    for number, kind, value in wire.fields(features, _WHAT):
        if number == 1 and kind == wire.DELIMITED:
            name, feature = entry(value)
            if name in wanted:
                found[name] = of_feature(feature)


def entry(message: Any) -> tuple[str, Any]:
    """The key and the bytes of the value of an entry of a map."""
    size = len(message)
    # The common case, a short key and a short value, without the loop over fields.
    if size > 4 and message[0] == 10 and message[1] < 128 and size > message[1] + 3:
        at = 2 + message[1]
        if message[at] == 18 and message[at + 1] < 128 and at + 2 + message[at + 1] == size:
            return wire.text(message[2:at], _WHAT), message[at + 2:]
    name, found = "", b""
    for number, kind, value in wire.fields(message, _WHAT):
        if kind != wire.DELIMITED:
            continue
        if number == 1:
            name = wire.text(value, _WHAT)
        elif number == 2:
            found = value
    return name, found


def of_feature(feature: Any) -> Held:
    """What a serialized Feature holds; the kind 0 for nothing."""
    size = len(feature)
    if size > 1 and feature[0] in (10, 18, 26) and feature[1] < 128 and feature[1] + 2 == size:
        return Held(feature[0] >> 3, feature[2:])
    found = Held(0, b"")
    for number, kind, value in wire.fields(feature, _WHAT):
        if number in _KINDS and kind == wire.DELIMITED:
            content = b"".join((found.content, value)) if number == found.kind else value
            found = Held(number, content)
    return found


def column(name: str, dtype: DType, features: Sequence[Held | None]) -> ExampleColumn:
    """The values of a feature, of which what each example holds is given.

    Raises:
        InvalidArgumentError: one holds values of another type, or bytes that are no list of them.
    """
    number = _NUMBERS[dtype.name]
    counts = np.full(len(features), -1, np.int64)
    parts: list[Any] = []
    for i, feature in enumerate(features):
        if feature is None or not feature.kind:
            continue
        if feature.kind != number:
            raise _mismatch(name, i, feature, dtype)
        counts[i] = 0
        parts.append(_strings(feature.content) if number == 1 else
                     _packed(feature.content, number))
    with_it = np.flatnonzero(counts == 0)
    if number == 1:
        counts[with_it] = [len(p) for p in parts]
        return ExampleColumn(of_strings([value for part in parts for value in part]), counts)
    values, counts[with_it] = of_packed(name, number, parts)
    return ExampleColumn(values, counts)


def of_strings(values: Sequence[bytes]) -> np.ndarray:
    """A vector of byte strings."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def of_packed(name: str, number: int, parts: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all parts, and how many each has: packed floats, or varints.

    Raises:
        InvalidArgumentError: a part is cut short.
    """
    joined, lengths = b"".join(parts), np.array([len(p) for p in parts], np.int64)
    if number == 2:
        if (lengths % 4).any():
            raise wire.damaged(f"the floats of '{name}'", 0, "a part of a float32")
        return np.frombuffer(joined, "<f4").astype(np.float32), lengths // 4
    counts = _ends(name, joined, lengths)
    return wire.read_varints(joined, f"the integers of '{name}'"), counts


def alone(name: str, dtype: DType, feature: Held) -> np.ndarray:
    """The values of a feature of one example.

    Raises:
        InvalidArgumentError: as `column`.
    """
    if feature.kind != _NUMBERS[dtype.name]:
        raise _mismatch(name, 0, feature, dtype)
    if feature.kind == 1:
        return of_strings(_strings(feature.content))
    packed = _packed(feature.content, feature.kind)
    if feature.kind == 3:
        return wire.read_varints(packed, f"the integers of '{name}'")
    if len(packed) % 4:
        raise wire.damaged(f"the floats of '{name}'", 0, "a part of a float32")
    return np.frombuffer(packed, "<f4").astype(np.float32)


def _mismatch(name: str, number: int, feature: Held, dtype: DType) -> InvalidArgumentError:
    return InvalidArgumentError(f"Key: {name}, Index: {number}.  Data types don't match. Data "
                                f"type: {_KINDS[feature.kind]} but expected type: {dtype.name}")


def _strings(content: Any) -> list[bytes]:
    found = []
    for number, kind, value in wire.fields(content, _WHAT):
        if number == 1 and kind == wire.DELIMITED:
            found.append(bytes(value))
    return found


def _packed(content: Any, number: int) -> Any:
    """The numbers of a list, packed: the bytes of floats, the varints of integers."""
    size = len(content)
    if not size:
        return b""
    if size > 1 and content[0] == 10 and content[1] < 128 and content[1] + 2 == size:
        return content[2:]
    parts = []
    for field, kind, value in wire.fields(content, _WHAT):
        if field != 1:
            continue
        if kind == wire.VARINT and number == 3:
            parts.append(wire.varint(value))
        elif kind == wire.DELIMITED or (kind == wire.FIXED32 and number == 2):
            parts.append(value)
        else:
            raise wire.damaged(_WHAT, 0, f"a number of the wire type {kind}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _ends(name: str, joined: bytes, lengths: np.ndarray) -> np.ndarray:
    """How many varints each part of `joined` holds.

    Raises:
        InvalidArgumentError: a part ends within one.
    """
    last = np.frombuffer(joined, np.uint8) < 128
    ends = np.cumsum(lengths)
    full = lengths > 0
    if not last[ends[full] - 1].all():
        raise wire.damaged(f"the integers of '{name}'", len(joined), "a number that is cut short")
    until = np.concatenate([[0], np.cumsum(last)])
    return until[ends] - until[ends - lengths]
