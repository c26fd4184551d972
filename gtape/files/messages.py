"""Protobuf messages as plain Python classes: fields with defaults, lists, maps, one of several; and
`tf.train.Example` with its parts, a dict from names to lists of integers, floats or bytes.

A class names its fields in `_fields`; what comes of them behaves as Python's protobuf package has
it, so far as messages of these few kinds need it. Unknown fields are skipped when bytes are read.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.files import wire

_DEFAULTS = {"int": 0, "bool": False, "text": "", "bytes": b"", "float": 0.0, "double": 0.0}
_FORMATS: dict[str, tuple[str, np.dtype, int]] = {
    "float": ("<f", np.dtype("<f4"), wire.FIXED32), "double": ("<d", np.dtype("<f8"), wire.FIXED64)}
_WIRES = {"int": wire.VARINT, "bool": wire.VARINT, "float": wire.FIXED32, "double": wire.FIXED64}


class Field(NamedTuple):
    """A field: `kind` is int, bool, text, bytes, float, double, or the class of a message. `many`
    says that it is a list, `map` that it is a dict from texts to messages, `oneof` names the group
    of which one field at most is set."""

    number: int
    name: str
    kind: Any
    many: bool = False
    map: bool = False
    oneof: str = ""


def _value(kind: str, value: Any) -> Any:
    """A value as a field of this kind holds it. Raises TypeError: it is of another type;
    ValueError: an integer beyond int64, a text that is no UTF-8."""
    if kind == "int":
        number = operator.index(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"a field of integers holds int64; got {shown(value)}")
        return number
    if kind == "bool":
        return bool(value)
    if kind == "float":
        # A number too large is infinite in a float32, as with protobuf; that is no warning.
        with np.errstate(over="ignore"):
            return float(np.float32(_real(value)))
    if kind == "double":
        return float(_real(value))
    if isinstance(value, bytes):
        return bytes(value) if kind == "bytes" else value.decode()
    if kind == "text" and isinstance(value, str):
        return str(value)
    raise TypeError(f"a field of {'bytes' if kind == 'bytes' else 'texts'} got "
                    f"{shown(value)}; write value.encode() for the bytes of a str, and "
                    f"tensor.numpy() for those of a tensor")


def _real(value: float) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"a field of floats takes real numbers; got {shown(value)}")
    return value


def _values(kind: str, values: Any) -> list[Any]:
    # A text is a list of its letters to Python; nobody means that.
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"a list of values is needed; got {shown(values)}: write [value]")
    # The common case at once; the numbers of other arrays and lists are checked one by one.
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.size:
        if kind == "int" and (values.dtype.kind in "ib"
                              or (values.dtype.kind == "u" and values.itemsize < 8)):
            return [int(v) for v in values.tolist()]
        if kind == "float" and values.dtype.kind in "iuf":
            with np.errstate(over="ignore"):
                return values.astype(np.float32).tolist()
    if kind == "int":
        return [_value(kind, int(v) if isinstance(v, (bool, np.bool_)) else v) for v in values]
    return [_value(kind, v) for v in values]


class Values(list):
    """The values of a field that is a list; each is checked as it comes in."""

    __slots__ = ("_kind",)
    __hash__ = None

    def __init__(self, kind: Any, values: Iterable[object] = ()) -> None:
        self._kind = kind
        super().__init__(self._checked(values))

    def _checked(self, values: Any) -> list[Any]:
        if isinstance(self._kind, str):
            return _values(self._kind, values)
        return [_message(self._kind, v) for v in values]

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        super().extend(self._checked([value]))

    def add(self, **fields: Any) -> Any:
        """A new message at the end of a list of messages."""
        message = self._kind(**fields)
        super().append(message)
        return message

    def extend(self, values: object) -> None:
        """Add values at the end."""
        super().extend(self._checked(values))

    def insert(self, index: Any, value: object) -> None:
        """Put a value before the one at `index`."""
        super().insert(index, self._checked([value])[0])

    def __setitem__(self, index: Any, value: Any) -> None:
        checked = self._checked(value if isinstance(index, slice) else [value])
        super().__setitem__(index, checked if isinstance(index, slice) else checked[0])

    def __iadd__(self, values: Any) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    # What was read from bytes is of the right type: it is not checked again.
    def _append_(self, values: list[object]) -> None:
        super().extend(values)


class Messages(dict):
    """A field that is a map: reading what is not there makes it, as protobuf's maps do."""

    __slots__ = ("_kind",)
    __hash__ = None

    def __init__(self, kind: Any, values: Any = ()) -> None:
        super().__init__()
        self._kind = kind
        for key, value in dict(values).items():
            super().__setitem__(_value("text", key), _message(kind, value))

    def __missing__(self, key: Any) -> Any:
        message = self._kind()
        super().__setitem__(_value("text", key), message)
        return message

    def __setitem__(self, key: object, value: object) -> None:
        # As protobuf's maps: the message would belong to two.
        raise ValueError(f"a message cannot be assigned to a key of a map; write "
                         f"map[{shown(key)}].CopyFrom(message)")

    def _put_(self, key: str, value: object) -> None:
        super().__setitem__(key, value)


def _message(kind: type[Message], value: object) -> Any:
    """A copy of a message, or one of the fields in a dict."""
    if isinstance(value, dict):
        return kind(**value)
    if type(value) is not kind:
        raise TypeError(f"a {kind.__name__} is needed, or a dict of its fields; got "
                        f"{shown(value)}")
    message = kind()
    message.CopyFrom(value)
    return message


class Message:
    """A message of protobuf. Its fields are given by name."""

    __slots__ = ("_held", "_marked")
    __hash__ = None  # type: ignore[assignment]
    _fields: ClassVar[tuple[Field, ...]] = ()
    _by_name: ClassVar[dict[str, Field]] = {}
    _by_number: ClassVar[dict[int, Field]] = {}

    def __init_subclass__(cls) -> None:
        cls._by_name = {f.name: f for f in cls._fields}
        cls._by_number = {f.number: f for f in cls._fields}

    def __init__(self, **fields: Any) -> None:
        # Around this class's own __setattr__, which takes the names of fields only.
        object.__setattr__(self, "_held", {})
        object.__setattr__(self, "_marked", False)
        for name, value in fields.items():
            if value is not None:
                self._start(self._field(name), value)

    def _start(self, field: Field, value: Any) -> None:
        if field.map:
            self._held[field.name] = Messages(field.kind, value)
        elif field.many:
            self._held[field.name] = Values(field.kind, value)
        elif isinstance(field.kind, str):
            self._held[field.name] = _value(field.kind, value)
        else:
            message = self._held[field.name] = _message(field.kind, value)
            message.SetInParent()

    @classmethod
    def _field(cls, name: str) -> Field:
        field = cls._by_name.get(name)
        if field is None:
            raise ValueError(f"a {cls.__name__} has no field {shown(name)}; it has "
                             f"{', '.join(cls._by_name)}")
        return field

    def __getattr__(self, name: str) -> Any:
        field = type(self)._by_name.get(name)
        if field is None:
            raise AttributeError(f"a {type(self).__name__} has no '{name}'; its fields are "
                                 f"{', '.join(self._by_name)}")
        if field.oneof and self._keep_last(field.oneof) != name:
            self._held.pop(name, None)
        held = self._held
        # A list or message that is asked for is kept: what is changed in it is part of this one.
        if name not in held:
            if isinstance(field.kind, str) and not field.many:
                return _DEFAULTS[field.kind]
            held[name] = (Messages(field.kind) if field.map else Values(field.kind) if field.many
                          else field.kind())
        return held[name]

    def __setattr__(self, name: str, value: TensorLike) -> None:
        field = type(self)._by_name.get(name)
        if field is None:
            raise AttributeError(f"a {type(self).__name__} has no field '{name}'; it has "
                                 f"{', '.join(self._by_name)}")
        if field.many or field.map or not isinstance(field.kind, str):
            raise AttributeError(f"'{name}' of a {type(self).__name__} is no single value and "
                                 f"cannot be assigned; change it in place, with "
                                 f"{'extend' if field.many else 'CopyFrom'}")
        self._take(field, _value(field.kind, value))

    def _take(self, field: Field, value: Any) -> None:
        if field.oneof:
            for other in self._fields:
                if other.oneof == field.oneof and other.name != field.name:
                    self._held.pop(other.name, None)
        self._held[field.name] = value

    def _keep_last(self, group: str) -> str | None:
        """Of the fields of a group the one that was made last is held, which is named: a message in
        it is set by being changed, of which the message around it learns when it is asked next."""
        among = [f.name for f in self._fields if f.oneof == group and self._has(f)]
        last = next((n for n in reversed(self._held) if n in among), None)
        for name in among:
            if name != last:
                del self._held[name]
        return last

    def _has(self, field: Field) -> bool:
        held = self._held.get(field.name)
        if held is None:
            return False
        if isinstance(held, Message):
            return held._marked or any(map(held._has, held._fields))
        if field.many or field.map:
            return len(held) > 0
        # -0.0 equals 0.0, and is another value in bytes.
        return bool(field.oneof) or held != _DEFAULTS[field.kind] or (str(held) == "-0.0")

    def _present(self) -> Iterator[tuple[Field, Any]]:
        # A message within a group may have been set since: then it is the one that counts.
        for group in {f.oneof for f in self._fields if f.oneof}:
            self._keep_last(group)
        for field in self._fields:
            if self._has(field):
                yield field, self._held[field.name]

    def HasField(self, field_name: str) -> bool:
        """Whether a field that is a message, or one of several, is set. Raises ValueError: there is
        no such field, or it is a list or a map."""
        field = self._field(field_name)
        if field.many or field.map or (isinstance(field.kind, str) and not field.oneof):
            raise ValueError(f"'{field_name}' of a {type(self).__name__} is always there; "
                             f"compare it with its default")
        if field.oneof:
            return self.WhichOneof(field.oneof) == field_name
        return self._has(field)

    def WhichOneof(self, oneof_group: str) -> str | None:
        """The name of the field that is set of a group of which one at most is. Raises ValueError:
        there is no such group."""
        if not oneof_group or all(f.oneof != oneof_group for f in self._fields):
            raise ValueError(f"a {type(self).__name__} has no oneof {shown(oneof_group)}")
        return self._keep_last(oneof_group)

    def SetInParent(self) -> None:
        """Mark the message as set, even if all of its fields have their defaults."""
        object.__setattr__(self, "_marked", True)

    def ListFields(self) -> list[tuple[Field, Any]]:
        """The fields that are set, each with its value."""
        return list(self._present())

    def IsInitialized(self) -> bool:
        """True: no field has to be set."""
        return True

    def Clear(self) -> None:
        """Give all fields their defaults."""
        self._held.clear()
        object.__setattr__(self, "_marked", False)

    def ClearField(self, field_name: str) -> None:
        """Give one field its default."""
        self._held.pop(self._field(field_name).name, None)

    def _require_like(self, what: str, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(f"{what} takes a {type(self).__name__}; got {shown(other)}")

    def CopyFrom(self, other_msg: Self) -> None:
        """Become like another message of the class. Raises TypeError: it is of another class."""
        self._require_like("CopyFrom", other_msg)
        # Clearing would lose what is to be copied.
        if other_msg is self:
            return
        # Taken before this one is cleared, in which the other may be held.
        held = {f.name: v for f, v in other_msg._present()}
        self.Clear()
        for name, value in held.items():
            self._start(self._by_name[name], value)
        self.SetInParent()

    def MergeFrom(self, other_msg: Self) -> None:
        """Take over what is set in another message: lists grow, single values are replaced. Raises
        TypeError: it is of another class."""
        self._require_like("MergeFrom", other_msg)
        for field, value in list(other_msg._present()):
            mine = getattr(self, field.name)
            if field.many:
                mine.extend(value)
            elif field.map:
                for key, part in value.items():
                    mine[key].CopyFrom(part)
            elif isinstance(field.kind, str):
                self._take(field, value)
            else:
                mine.MergeFrom(value)
                mine.SetInParent()

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message in protobuf's wire format; `deterministic` orders maps by key, instead of by
        when a key was added."""
        return b"".join(part for field, value in self._present()
                        for part in _encoded(field, value, bool(deterministic)))

    SerializePartialToString = SerializeToString

    def ByteSize(self) -> int:
        """The length of `SerializeToString()`."""
        return len(self.SerializeToString())

    @classmethod
    def FromString(cls, s: Any) -> Self:
        """The message that bytes in protobuf's wire format hold. Raises InvalidArgumentError: they
        are damaged, cut short, or something else."""
        message = cls()
        message.MergeFromString(s)
        return message

    def ParseFromString(self, serialized: Any) -> int:
        """Become the message that bytes hold; the number of bytes. Raises InvalidArgumentError:
        they are damaged, cut short, or something else; the message is as it was."""
        # Read first: bytes that are damaged leave the message as it was.
        message = self.FromString(serialized)
        self.Clear()
        self._held.update(message._held)
        self.SetInParent()
        return len(serialized)

    def MergeFromString(self, serialized: bytes | memoryview) -> int:
        """Take over what bytes hold, in lists after what is there; the number of bytes. Raises
        InvalidArgumentError: they are damaged, cut short, or something else."""
        what = f"bytes as a {type(self).__name__}"
        if not isinstance(serialized, (bytes, bytearray, memoryview)):
            raise TypeError(f"{type(self).__name__} is read from bytes; got {shown(serialized)}"
                            f"{'; write tensor.numpy()' if hasattr(serialized, 'numpy') else ''}")
        for number, kind, value in wire.fields(memoryview(serialized), what):
            field = self._by_number.get(number)
            if field is not None:
                self._read(field, kind, value, what)
        return len(serialized)

    def _read(self, field: Field, kind: int, value: Any, what: str) -> None:
        if field.map:
            _read_entry(getattr(self, field.name), field, kind, value, what)
        elif not isinstance(field.kind, str):
            message = field.kind() if field.many else getattr(self, field.name)
            message.MergeFromString(_delimited(kind, value, what))
            message.SetInParent()
            if field.many:
                getattr(self, field.name)._append_([message])
        elif field.many:
            getattr(self, field.name)._append_(_decoded(field, kind, value, what))
        else:
            # Of several values the last one counts: protobuf's rule for fields that are no lists.
            values = _decoded(field, kind, value, what)
            if values:
                self._take(field, values[-1])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return [(f.name, v) for f, v in self._present()] == [
            (f.name, v) for f, v in other._present()]

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in _lines(self, ""))

    def __copy__(self, memo: object = None) -> Self:
        return _message(type(self), self)

    __deepcopy__ = __copy__

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._by_name})


def _encoded(field: Field, value: Any, ordered: bool) -> Iterator[bytes]:
    if field.map:
        for key in sorted(value) if ordered else value:
            entry = wire.delimited(1, key.encode()) + wire.delimited(
                2, value[key].SerializeToString(ordered))
            yield wire.delimited(field.number, entry)
    elif not isinstance(field.kind, str):
        for message in value if field.many else [value]:
            yield wire.delimited(field.number, message.SerializeToString(ordered))
    elif field.kind in ("text", "bytes"):
        for item in value if field.many else [value]:
            yield wire.delimited(field.number, item.encode() if field.kind == "text" else item)
    elif field.many:
        # Numbers of a list stand packed, as TensorFlow writes them; both ways are read.
        packed = (wire.varints(value) if field.kind in ("int", "bool") else
                  np.array(value, _FORMATS[field.kind][1]).tobytes())
        yield wire.delimited(field.number, packed)
    else:
        yield wire.varint(field.number << 3 | _WIRES[field.kind])
        yield (wire.varint(int(value)) if field.kind in ("int", "bool")
               else struct.pack(_FORMATS[field.kind][0], value))


def _delimited(kind: int, value: memoryview, what: str) -> memoryview:
    if kind != wire.DELIMITED:
        raise InvalidArgumentError(f"could not parse {what}: a number where a message or a text "
                                   f"must be; the bytes are damaged or something else")
    return value


def _decoded(field: Field, kind: int, value: Any, what: str) -> list[object]:
    """The values of a field, of which there are many where they are packed."""
    if field.kind in ("text", "bytes"):
        content = _delimited(kind, value, what)
        return [bytes(content) if field.kind == "bytes" else wire.text(content, what)]
    if field.kind in ("int", "bool"):
        numbers = ([wire.signed(value)] if kind == wire.VARINT
                   else wire.read_varints(_delimited(kind, value, what), what).tolist())
        return [bool(v) for v in numbers] if field.kind == "bool" else numbers
    _, dtype, single = _FORMATS[field.kind]
    if kind not in (single, wire.DELIMITED) or len(value) % dtype.itemsize:
        raise InvalidArgumentError(f"could not parse {what}: the field '{field.name}' holds no "
                                   f"whole {field.kind}s; the bytes are damaged or something else")
    return np.frombuffer(value, dtype).tolist()


def _read_entry(into: Messages, field: Field, kind: int, value: memoryview, what: str) -> None:
    key, message = "", field.kind()
    for number, inner, part in wire.fields(_delimited(kind, value, what), what):
        if number == 1:
            key = wire.text(_delimited(inner, part, what), what)
        elif number == 2:
            message = field.kind()
            message.MergeFromString(_delimited(inner, part, what))
    into._put_(key, message)


def _lines(message: Message, indent: str) -> Iterator[str]:
    """Protobuf's text format, the keys of maps in order."""
    for field, value in message._present():
        if field.map:
            for key in sorted(value):
                yield f"{indent}{field.name} {{"
                yield f"{indent}  key: {_quoted(key.encode())}"
                yield f"{indent}  value {{"
                yield from _lines(value[key], indent + "    ")
                yield f"{indent}  }}"
                yield f"{indent}}}"
            continue
        for item in value if field.many else [value]:
            if isinstance(item, Message):
                yield f"{indent}{field.name} {{"
                yield from _lines(item, indent + "  ")
                yield f"{indent}}}"
            else:
                yield f"{indent}{field.name}: {_scalar(field.kind, item)}"


def _scalar(kind: str, value: Any) -> str:
    if kind in ("text", "bytes"):
        return _quoted(value.encode() if kind == "text" else value)
    if kind == "bool":
        return str(value).lower()
    if kind in ("float", "double"):
        # As few digits as tell a float32 from its neighbours.
        text = str(np.float32(value) if kind == "float" else value)
        return text.removesuffix(".0")
    return str(value)


_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _quoted(value: bytes) -> str:
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}")
                         for b in value) + '"'


class Int64List(Message):
    """A list of integers: `Int64List(value=[1, 2])`."""

    __slots__ = ()
    _fields = (Field(1, "value", "int", many=True),)


class FloatList(Message):
    """A list of floats, held as float32: `FloatList(value=[0.5])`."""

    __slots__ = ()
    _fields = (Field(1, "value", "float", many=True),)


class BytesList(Message):
    """A list of byte strings: `BytesList(value=[b"text"])`."""

    __slots__ = ()
    _fields = (Field(1, "value", "bytes", many=True),)


class Feature(Message):
    """One of `bytes_list`, `float_list` and `int64_list`, or none."""

    __slots__ = ()
    _fields = (Field(1, "bytes_list", BytesList, oneof="kind"),
               Field(2, "float_list", FloatList, oneof="kind"),
               Field(3, "int64_list", Int64List, oneof="kind"))


class Features(Message):
    """A dict `feature` from names to `Feature`s."""

    __slots__ = ()
    _fields = (Field(1, "feature", Feature, map=True),)


class Example(Message):
    """An example to learn from: its `features`."""

    __slots__ = ()
    _fields = (Field(1, "features", Features),)


class FeatureList(Message):
    """A list `feature` of `Feature`s, one for each step of a sequence."""

    __slots__ = ()
    _fields = (Field(1, "feature", Feature, many=True),)


class FeatureLists(Message):
    """A dict `feature_list` from names to `FeatureList`s."""

    __slots__ = ()
    _fields = (Field(1, "feature_list", FeatureList, map=True),)


class SequenceExample(Message):
    """A sequence to learn from: `context` for the whole, `feature_lists` for its steps."""

    __slots__ = ()
    _fields = (Field(1, "context", Features), Field(2, "feature_lists", FeatureLists))
