"""PNG files of arrays, written without another package."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from gtape.core.errors import InvalidArgumentError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: PNG's code of the kind of pixels, by the number of channels.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
_LENGTH = struct.Struct(">I")


def _part(kind: bytes, content: bytes) -> bytes:
    return b"".join((_LENGTH.pack(len(content)), kind, content,
                     _LENGTH.pack(zlib.crc32(content, zlib.crc32(kind)))))


def png(image: np.ndarray, compression: int = -1) -> bytes:
    """The PNG file of an image [height, width, channels] of uint8 or uint16.

    Each row is stored as its difference to the row above, which packs better than the row.

    Raises:
        InvalidArgumentError: no pixels, another number of channels, or another dtype.
    """
    if image.ndim != 3 or not image.size or image.shape[2] not in _COLOURS or (
            image.dtype not in (np.uint8, np.uint16)):
        raise InvalidArgumentError(f"encode_png takes images [height, width, channels] of 1 to 4 "
                                   f"channels of uint8 or uint16, with one pixel at least; got "
                                   f"{image.dtype.name}{list(image.shape)}")
    height, width, channels = image.shape
    rows = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">")))
    raw = rows.view(np.uint8).reshape(height, -1)
    lines = np.empty((height, raw.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[0, 1:] = raw[0]
    np.subtract(raw[1:], raw[:-1], out=lines[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 8 * image.itemsize, _COLOURS[channels], 0, 0, 0)
    return b"".join((_SIGNATURE, _part(b"IHDR", head),
                     _part(b"IDAT", zlib.compress(lines.tobytes(), compression)),
                     _part(b"IEND", b"")))
