"""Writers: event files, which of them summaries go to, and the messages in them, which TensorBoard
reads.

Summaries made in a `tf.function` are written at every call, in order, to the writer of the moment
of the call, unless the function itself says which.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import tracer_now
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.files.gfile import makedirs
from gtape.files.messages import Field, Message
from gtape.files.paths import errors, local
from gtape.files.records import TFRecordWriter
from gtape.files.serialized import encoded
from gtape.ops.arguments import as_int
from gtape.trace.host_steps import step

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


# In the names of files: two writers of a process may begin within one second.
_numbers = itertools.count()


class Setting(NamedTuple):
    """A writer, a step or a condition that is in force, and the trace in which it came into force;
    None outside of one."""

    value: Any
    tracer: Any


# A writer that is the default in one thread is not in another, as in TensorFlow.
class _State(threading.local):
    """What is in force in this thread."""

    def __init__(self) -> None:
        self.writer = Setting(None, None)
        self.step = Setting(None, None)
        self.condition = Setting(True, None)


state = _State()


def setting(value: object) -> Setting:
    """A setting that comes into force now."""
    return Setting(value, tracer_now())


class SummaryWriter:
    """The base of what `create_file_writer` gives."""

    closed = False

    @contextmanager
    def as_default(self, step: TensorLike | None = None) -> Iterator[SummaryWriter]:
        """Summaries go to this writer within the block; with `step`, a number, tensor or Variable,
        of that step. Raises RuntimeError: the writer is closed."""
        self._check()
        before = state.writer, state.step
        self.set_as_default(step)
        try:
            yield self
        finally:
            state.writer = before[0]
            # A step that the block set itself lives on where as_default gave none.
            if step is not None:
                state.step = before[1]
            flush(self)

    def set_as_default(self, step: TensorLike | None = None) -> None:
        """Summaries go to this writer from now on. Raises RuntimeError: the writer is closed."""
        self._check()
        state.writer = setting(self)
        if step is not None:
            state.step = setting(step)

    def _check(self) -> None:
        if self.closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def init(self) -> None:
        """Nothing: a writer is ready when it is made. Raises RuntimeError: it is closed."""
        self._check()

    def flush(self) -> None:
        """Hand what was written to the system."""

    def close(self) -> None:
        """End the file."""

    def _put(self, step: int, **content: object) -> None:
        """Write an event."""


class _NoWriter(SummaryWriter):
    """A writer that writes nothing."""

    def __repr__(self) -> str:
        return "<tf.summary.SummaryWriter that writes nothing>"


class _FileWriter(SummaryWriter):
    """A writer of an event file in a folder."""

    def __init__(self, folder: str, most: int, seconds: float, suffix: str) -> None:
        makedirs(folder)
        # TensorBoard reads all files of a folder whose names have "tfevents" in them.
        host = platform.node() or "localhost"
        name = (f"events.out.tfevents.{int(time.time())}.{host}.{os.getpid()}."
                f"{next(_numbers)}{suffix}")
        self._path = os.path.join(folder, name)
        self._file = TFRecordWriter(self._path)
        self._most, self._seconds = most, seconds
        self._waiting, self._flushed = 0, time.monotonic()
        self._lock = threading.Lock()
        # Ends the file also where nobody closes the writer before Python ends.
        self._finish = weakref.finalize(self, self._file.close)
        self._file.write(Event(wall_time=time.time(), file_version=FILE_VERSION,
                               source_metadata=SourceMetadata(writer="gtape.summary"),
                               ).SerializeToString())
        self._file.flush()

    def __repr__(self) -> str:
        return f"<tf.summary.SummaryWriter '{self._path}'>"

    def _put(self, step: int, **content: object) -> None:
        self._check()
        event = Event(wall_time=time.time(), step=step, **content).SerializeToString()
        # Functions on several threads may write to one file; a record must not be torn.
        with self._lock:
            self._file.write(event)
            self._waiting += 1
        # Outside of the lock, which `flush` takes itself.
        if self._waiting >= self._most or time.monotonic() - self._flushed > self._seconds:
            self.flush()

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self.closed:
            return
        with self._lock, errors(self._path):
            self._file.flush()
            self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """End the file. What is written to the writer afterwards is an error."""
        self.closed = True
        with self._lock:
            self._finish()


def create_file_writer(logdir: object, max_queue: int | None = None,
                       flush_millis: int | None = None, filename_suffix: object = None,
                       name: str | None = None, experimental_trackable: bool = False,
                       experimental_mesh: object = None) -> SummaryWriter:
    """A writer of a new event file in the folder `logdir`, which is made if it is missing. Raises
    NotFoundError, PermissionDeniedError, FailedPreconditionError: no file can be made there;
    InvalidArgumentError: max_queue or flush_millis is negative, or the suffix is no name.

    Args:
        logdir: for TensorBoard: `tensorboard --logdir` of it. None for a writer that writes
            nothing.
        max_queue: after so many summaries the file is flushed, 10 by default.
        flush_millis: or at the first after so many milliseconds, 120,000 by default.
        filename_suffix: what the file's name ends with, ".v2" by default.
    """
    if logdir is None:
        return create_noop_writer()
    most = 10 if max_queue is None else as_int(max_queue, "max_queue")
    millis = 120_000 if flush_millis is None else as_int(flush_millis, "flush_millis")
    suffix = ".v2" if filename_suffix is None else str(filename_suffix)
    if most < 0 or millis < 0 or os.sep in suffix:
        raise InvalidArgumentError(f"create_file_writer: max_queue and flush_millis must not be "
                                   f"negative, filename_suffix no path; got {shown(max_queue)}, "
                                   f"{shown(flush_millis)} and {shown(filename_suffix)}")
    return _FileWriter(local(logdir), most, millis / 1000, suffix)


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing."""
    return _NoWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Flush a writer, the default one if none is given; in a traced function at every call. Raises
    TypeError: `writer` is none."""
    target = state.writer.value if writer is None else writer
    if target is None:
        return
    if not isinstance(target, SummaryWriter):
        raise TypeError(f"flush takes a SummaryWriter; got {shown(target)}")

    def run() -> list[object]:
        target.flush()
        return []

    # A step of its own in a trace, in order with the summaries before it.
    step("flush_summaries", run, [], [], has_side_effect=True)
