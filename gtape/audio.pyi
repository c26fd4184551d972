"""Names of gtape.audio; written by `python -m gtape._stub`."""

from gtape.files.wav import decode_wav as decode_wav
from gtape.files.wav import encode_wav as encode_wav
