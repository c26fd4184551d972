"""gtape.dtypes.experimental: floats of one byte, which are stored, moved and cast."""

from gtape._lazy import attach as _attach

_TABLE = {"gtape.core.dtypes": "float8_e4m3fn float8_e5m2"}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
