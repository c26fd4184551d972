"""gtape.summary.experimental: the step of summaries, and their tags."""

from __future__ import annotations

from gtape.summary.recording import get_step, set_step, summary_scope, write_raw_pb

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]


def __getattr__(name: str) -> object:
    from gtape._names import missing

    raise AttributeError(missing("gtape.summary.experimental", name, __all__))
