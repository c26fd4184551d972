"""gtape.audio: WAV files as tensors."""

from __future__ import annotations

from gtape.files.wav import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]


def __getattr__(name: str) -> object:
    from gtape._names import missing

    raise AttributeError(missing("gtape.audio", name, __all__))
