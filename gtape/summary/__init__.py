"""gtape.summary: files that TensorBoard reads: numbers, distributions, images, texts, sounds."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.summary": "experimental",
    "gtape.summary.recording": "record_if should_record_summaries write",
    "gtape.summary.values": """
        audio graph histogram image scalar text trace_export trace_off trace_on""",
    "gtape.summary.writers": "SummaryWriter create_file_writer create_noop_writer flush",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
