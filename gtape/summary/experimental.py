"""gtape.summary.experimental: the step of summaries, and their tags."""

from gtape._lazy import attach as _attach

_TABLE = {"gtape.summary.recording": "get_step set_step summary_scope write_raw_pb"}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
