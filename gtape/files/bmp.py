"""BMP files of 8, 24 or 32 bits a pixel without compression, read without another package."""

from __future__ import annotations

import struct

import numpy as np

from gtape.core.errors import InvalidArgumentError

_HEAD = struct.Struct("<I4xiiHHI")


def bmp(content: bytes) -> np.ndarray:
    """The pixels [height, width, 1, 3 or 4] of a BMP file.

    Raises:
        InvalidArgumentError: the file is damaged or cut short, or of another kind.
    """
    if len(content) < 34:
        raise _invalid(content, "it is cut short")
    start, width, height, _, bits, packed = _HEAD.unpack_from(content, 10)
    channels = {8: 1, 24: 3, 32: 4}.get(bits)
    if channels is None or packed not in (0, 3):
        raise _invalid(content, f"{bits} bits a pixel and the compression {packed}; only 8, 24 and "
                                f"32 bits without compression are read")
    rows, row = abs(height), (width * channels + 3) // 4 * 4
    if width <= 0 or not rows or start + rows * row > len(content):
        raise _invalid(content, f"it claims {width} x {rows} pixels from byte {start} on, more "
                                f"than there are")
    lines = np.frombuffer(content, np.uint8, rows * row, start).reshape(rows, row)
    pixels = lines[:, :width * channels].reshape(rows, width, channels)
    if height > 0:
        pixels = pixels[::-1]
    order = [0] if channels == 1 else [2, 1, 0, 3][:channels]
    return pixels[..., order]


def _invalid(content: bytes, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid BMP data, size {len(content)}: {what}")
