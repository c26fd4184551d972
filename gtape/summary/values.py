"""Summaries of numbers, distributions, images, texts and sounds, and of the graphs of traced
functions, with the switches of TensorFlow's traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from gtape.compile.frontend.closed_graph import ClosedGraph, listeners
from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.files import wire
from gtape.files.pictures import png
from gtape.files.wav import wav_bytes
from gtape.ops.arguments import as_int
from gtape.ops.image.adjustments import convert_image_dtype
from gtape.summary.recording import record, summary_scope, write
from gtape.summary.writers import SummaryMetadata, metadata, state, summary_of
from gtape.trace.graph import Graph

#: TensorBoard's own number.
_BUCKETS = 30
#: What TensorBoard's plugin for sounds reads: the encoding 11 is WAV.
_WAV = b"\x10\x0b"


def _record(name: str, default: str, data: Tensor, dtype: dtypes.DType, array_of: Any,
            about: SummaryMetadata, step: object) -> Tensor:
    with summary_scope(name, default) as (tag, _):
        return record(default, [data], lambda array: summary_of(tag, array_of(array), dtype, about),
                      step)


def scalar(name: str, data: TensorLike, step: TensorLike | None = None,
           description: str | None = None) -> Tensor:
    """Write a number, as float32; True if it was written. Raises ValueError: it is no scalar; there
    is a writer, but no step.

    Args:
        name: of the curve, below the name scopes around it.
        step: of the number; by default `tf.summary.experimental.get_step()`.
        description: Markdown for TensorBoard.
    """
    value = convert(data)
    # In the words of TensorFlow's assertion.
    if value.ndim:
        raise ValueError(f"Expected scalar shape, saw shape: {value.shape}.")
    if value.dtype is dtypes.string or value.dtype.is_complex:
        raise InvalidArgumentError(f"scalar: data must be a real number; got {value.spec}")
    return _record(name, "scalar_summary", value, dtypes.float32,
                   lambda array: np.float32(array), metadata("scalars", description), step)


def buckets_of(values: np.ndarray, count: int) -> np.ndarray:
    """[left edge, right edge, number] of `count` buckets of equal width over finite values. Of no
    values all are zero; of one value, several times, the last bucket has it."""
    # A number of buckets comes from the program, and may be any.
    with room_for("histogram", Spec((count, 3), dtypes.float64)):
        buckets = np.zeros((count, 3))
    # Edges at infinity make no widths.
    values = values[np.isfinite(values)]
    if not values.size or not count:
        return buckets
    low, high = values.min(), values.max()
    # Buckets of the width 0 would divide by it.
    if low == high:
        buckets[:, :2] = low
        buckets[-1, 2] = values.size
        return buckets
    edges = np.linspace(low, high, count + 1)
    width = (high - low) / count
    # The largest value lies on the last edge, and belongs to the bucket before it.
    places = np.minimum(np.floor((values - low) / width), count - 1).astype(np.int64)
    buckets[:, 0], buckets[:, 1] = edges[:-1], edges[1:]
    buckets[:, 2] = np.bincount(places, minlength=count)
    return buckets


def histogram(name: str, data: TensorLike, step: TensorLike | None = None,
              buckets: int | None = None, description: str | None = None) -> Tensor:
    """Write how the values of a tensor are distributed; True if it was written. Raises
    InvalidArgumentError: the values are no real numbers; ValueError: there is a writer, but no
    step.

    Values that are not finite are left out.

    Args:
        name: of the distribution, below the name scopes around it.
        step: by default `tf.summary.experimental.get_step()`.
        buckets: their number, 30 by default.
        description: Markdown for TensorBoard.
    """
    value = convert(data)
    if value.dtype is dtypes.string or value.dtype.is_complex:
        raise InvalidArgumentError(f"histogram: data must hold real numbers; got {value.spec}")
    count = max(_BUCKETS if buckets is None else as_int(buckets, "histogram: buckets"), 0)
    return _record(name, "histogram_summary", value, dtypes.float64,
                   lambda array: buckets_of(np.asarray(array, np.float64).reshape(-1), count),
                   metadata("histograms", description), step)


def image(name: str, data: TensorLike, step: SupportsIndex | None = None, max_outputs: int = 3,
          description: str | None = None) -> Tensor:
    """Write images [k, height, width, 1 to 4] as PNG; True if they were written. Raises ValueError:
    another shape; there is a writer, but no step.

    Args:
        name: of the images, below the name scopes around it.
        data: floats in [0, 1], or integers over the range of their dtype.
        step: by default `tf.summary.experimental.get_step()`.
        max_outputs: of more images the first so many are written.
        description: Markdown for TensorBoard.
    """
    value = convert(data)
    if value.ndim != 4 or not 1 <= value.spec.shape[3] <= 4:
        raise ValueError(f"image: data must have rank 4, [k, height, width, 1 to 4]. Received rank "
                         f"{value.ndim}, shape {tuple(value.spec.shape)}")
    most = max(as_int(max_outputs, "max_outputs"), 0)

    def strings(array: np.ndarray) -> np.ndarray:
        some = np.asarray(convert_image_dtype(array[:most], dtypes.uint8, saturate=True).numpy())
        height, width = array.shape[1:3]
        # The plugin reads the size first, then the pictures.
        return np.array([b"%d" % width, b"%d" % height, *[png(i) for i in some if i.size]], object)

    return _record(name, "image_summary", value, dtypes.string, strings,
                   metadata("images", description), step)


def text(name: str, data: str, step: object = None, description: str | None = None) -> Tensor:
    """Write a tensor of strings; True if it was written. TensorBoard shows it as Markdown, one of
    two axes as a table. Raises TypeError: it holds no strings; ValueError: there is a writer, but
    no step."""
    value = convert(data)
    if value.dtype is not dtypes.string:
        raise TypeError(f"text: data must be of strings; got {value.spec}")
    return _record(name, "text_summary", value, dtypes.string,
                   lambda array: np.asarray(array, object), metadata("text", description), step)


def audio(name: str, data: TensorLike, sample_rate: int, step: object = None, max_outputs: int = 3,
          encoding: str | None = None, description: str | None = None) -> Tensor:
    """Write sounds [k, time, channels] of floats in [-1, 1] as WAV; True if they were written.
    Raises ValueError: another shape or encoding; there is a writer, but no step.

    Args:
        name: of the sounds, below the name scopes around it.
        sample_rate: samples a second.
        step: by default `tf.summary.experimental.get_step()`.
        max_outputs: of more sounds the first so many are written.
        encoding: "wav" or None.
        description: Markdown for TensorBoard.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {shown(encoding)}; it is 'wav'")
    value = convert(data)
    if value.ndim != 3 or not value.dtype.is_floating:
        raise ValueError(f"audio: data must be floats of rank 3, [k, time, channels]; got "
                         f"{value.spec}")
    most, rate = max(as_int(max_outputs, "max_outputs"), 0), as_int(sample_rate,
                                                                    "audio: sample_rate")

    def strings(array: np.ndarray) -> np.ndarray:
        pairs = np.empty((min(len(array), most), 2), object)
        for i in range(len(pairs)):
            # The plugin reads pairs of a sound and a label, which TensorFlow leaves empty.
            pairs[i] = wav_bytes(np.asarray(array[i], np.float32), rate), b""
        return pairs

    return _record(name, "audio_summary", value, dtypes.string, strings,
                   metadata("audio", description, _WAV), step)


#: The graphs that `trace_export` will write, within another list while they are kept.
_tracing: list[list[Graph]] = []


def graph_def(graph: Graph) -> bytes:
    """A GraphDef of the nodes of a traced function: their names, ops and inputs."""
    names: dict[int, str] = {}
    used: Counter[str] = Counter()
    nodes = []
    for name, op, inputs, outputs in _nodes(graph, names):
        used[name] += 1
        # As TensorFlow names them, by which TensorBoard draws nodes of one name as a series.
        unique = name if used[name] == 1 else f"{name}_{used[name] - 1}"
        for i, output in enumerate(outputs):
            names[id(output)] = unique if not i else f"{unique}:{i}"
        node = wire.delimited(1, unique.encode()) + wire.delimited(2, op.encode())
        # Inputs that the graph does not make, such as what it closes over, have no node to name.
        nodes.append(wire.delimited(1, node + b"".join(
            wire.delimited(3, names[id(x)].encode()) for x in inputs if id(x) in names)))
    return b"".join(nodes)


def _nodes(graph: Graph, names: dict[int, str]) -> Iterator[tuple[str, str, Any, Any]]:
    """(name, op, inputs, outputs) of inputs, constants and nodes, each after what it reads."""
    for entry in graph.inputs:
        yield "input", "Placeholder", (), (entry,)
    for node in graph.nodes:
        for x in node.inputs:
            if id(x) not in names:
                yield "constant", "Const", (), (x,)
        # Ops that users do not call end with an underscore.
        op = node.op.name.rstrip("_") or "op"
        yield op.replace(" ", "_"), op, node.inputs, node.outputs


def graph(graph_data: object) -> Tensor:
    """Write the graph of a traced function, as `f.get_concrete_function(...).graph`; True if it was
    written. Raises TypeError: it is no graph of gtape's."""
    if not isinstance(graph_data, Graph):
        raise TypeError(f"graph: write tf.summary.graph(f.get_concrete_function(x).graph) for a "
                        f"tf.function f; got {shown(graph_data)}")
    writer = state.writer.value
    condition = state.condition.value
    recorded = condition() if callable(condition) else condition
    if writer is None or not bool(recorded):
        return convert(False)
    writer._put(0, graph_def=graph_def(graph_data))
    return convert(True)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: object = None) -> None:
    """From now on the graphs of functions that are traced are kept for `trace_export`, but for
    graph=False. The profiler's arguments are taken for TensorFlow's sake: nothing is profiled."""
    # What an earlier call gathered is dropped.
    trace_off()
    _tracing.append([])
    if graph:
        listeners.append(_keep)


def _keep(traced: ClosedGraph) -> None:
    _tracing[0].append(traced.graph)


def trace_off() -> None:
    """Take `trace_on` back."""
    _tracing.clear()
    if _keep in listeners:
        listeners.remove(_keep)


def trace_export(name: str, step: SupportsIndex | None = None, profiler_outdir: object = None,
                 ) -> None:
    """Write the graphs of the functions that were traced since `trace_on`, if any, and end it.
    Raises ValueError: `trace_on` was not called; there is a writer, but no step. Functions that had
    been traced before are not among them: `graph` writes that of any."""
    if not _tracing:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    graphs = [wire.delimited(4, wire.delimited(2, graph_def(traced))) for traced in _tracing[0]]
    write(name, b"".join(graphs), step, metadata("graph_run_metadata_graph", content=b"1"))
    trace_off()
