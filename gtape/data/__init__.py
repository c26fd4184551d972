"""gtape.data: pipelines that read, transform, shuffle and batch what a model is trained on."""

from __future__ import annotations

import importlib

from gtape._names import missing, parsed

#: A number of threads, or of elements kept ready, that is chosen while the pipeline runs.
AUTOTUNE = -1

_TABLE = {
    "gtape.data.dataset": "Dataset INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
    "gtape.data.iterators": "Iterator NumpyIterator",
    "gtape.data.records": "FixedLengthRecordDataset TFRecordDataset",
    "gtape.data.text_lines": "TextLineDataset",
    "gtape.data.options": "Options ThreadingOptions",
    "gtape.data.windows": "DatasetSpec",
}
_NAMES = parsed(_TABLE)

__all__ = ["AUTOTUNE", "experimental", *sorted(_NAMES)]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name == "experimental":
        return importlib.import_module("gtape.data.experimental")
    entry = _NAMES.get(name)
    if entry is None:
        raise AttributeError(missing("gtape.data", name, __all__))
    found = globals()[name] = getattr(importlib.import_module(entry[0]), entry[1])
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
