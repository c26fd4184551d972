"""The messages of event files: what TensorBoard reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gtape.core import dtypes
from gtape.core.dtypes import DType
from gtape.files.messages import Field, Message
from gtape.files.tensor_protos import encoded

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

#: The first record of an event file says that it is one.
FILE_VERSION = "brain.Event:2"


class PluginData(Message):
    """Which of TensorBoard's plugins shows a value, and what it is to know of it."""

    __slots__ = ()
    _fields = (Field(1, "plugin_name", "text"), Field(2, "content", "bytes"))


class SummaryMetadata(Message):
    """What TensorBoard is to know of the values of a tag."""

    __slots__ = ()
    _fields = (Field(1, "plugin_data", PluginData), Field(2, "display_name", "text"),
               Field(3, "summary_description", "text"), Field(4, "data_class", "int"))


class SummaryValue(Message):
    """A value of a tag; `tensor` is a TensorProto in bytes."""

    __slots__ = ()
    _fields = (Field(1, "tag", "text"), Field(8, "tensor", "bytes", oneof="value"),
               Field(9, "metadata", SummaryMetadata))


class Summary(Message):
    """Values of one step."""

    __slots__ = ()
    _fields = (Field(1, "value", SummaryValue, many=True),)


class SourceMetadata(Message):
    """What wrote a file."""

    __slots__ = ()
    _fields = (Field(1, "writer", "text"),)


class Event(Message):
    """A record of an event file; `graph_def` is a message in bytes."""

    __slots__ = ()
    _fields = (Field(1, "wall_time", "double"), Field(2, "step", "int"),
               Field(3, "file_version", "text", oneof="what"),
               Field(4, "graph_def", "bytes", oneof="what"),
               Field(5, "summary", Summary, oneof="what"),
               Field(10, "source_metadata", SourceMetadata))


def metadata(plugin: str, description: str | None = None, content: bytes = b"") -> SummaryMetadata:
    """The metadata of the values that a plugin shows."""
    return SummaryMetadata(plugin_data=PluginData(plugin_name=plugin, content=content),
                           summary_description=description or "")


def summary_of(tag: str, array: TensorLike, dtype: DType, about: SummaryMetadata | None) -> Summary:
    """A Summary of one value."""
    array = np.asarray(array, dtype.np_dtype if dtype is not dtypes.string else object)
    return Summary(value=[SummaryValue(tag=tag, tensor=encoded(array, dtype), metadata=about)])
