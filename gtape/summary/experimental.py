"""gtape.summary.experimental: the step of summaries, and their tags."""

from __future__ import annotations

from gtape._names import lacking as _lacking
from gtape.summary.recording import get_step, set_step, summary_scope, write_raw_pb

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]

__getattr__ = _lacking("gtape.summary.experimental", __all__)
