"""gtape.summary: files that TensorBoard reads: numbers, distributions, images, texts, sounds."""

from __future__ import annotations

from gtape._names import lacking as _lacking
from gtape.summary import experimental
from gtape.summary.graphs import graph, trace_export, trace_off, trace_on
from gtape.summary.recording import record_if, should_record_summaries, write
from gtape.summary.values import audio, histogram, image, scalar, text
from gtape.summary.writers import SummaryWriter, create_file_writer, create_noop_writer, flush

__all__ = ["SummaryWriter", "audio", "create_file_writer", "create_noop_writer", "experimental",
           "flush", "graph", "histogram", "image", "record_if", "scalar",
           "should_record_summaries", "text", "trace_export", "trace_off", "trace_on", "write"]

__getattr__ = _lacking("gtape.summary", __all__)
