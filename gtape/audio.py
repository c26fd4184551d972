"""gtape.audio: WAV files as tensors."""

from gtape._lazy import attach as _attach

_TABLE = {"gtape.files.wav": "decode_wav encode_wav"}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
