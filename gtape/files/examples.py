"""`tf.train.Example` and its parts: a dict from names to lists of integers, floats or bytes.

In bytes they are protobuf messages, the same as TensorFlow's.
"""

from __future__ import annotations

from gtape.files.messages import Field, Message


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
