"""WAV files of 16-bit samples: `tf.audio.decode_wav` and `encode_wav`."""

from __future__ import annotations

import struct
from typing import NamedTuple, SupportsIndex

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.files.images import single
from gtape.ops.arguments import as_int
from gtape.trace.host_steps import step

_HEAD = struct.Struct("<HHIIHH")


class Sound(NamedTuple):
    """Samples [time, channels] of 16 bits, and how many a second."""

    samples: np.ndarray
    rate: int


def _wrong(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"decode_wav: {what}; the bytes are damaged, cut short, or no WAV "
                                f"file of 16-bit samples")


def parsed(content: bytes) -> Sound:
    """The samples of a WAV file. Raises InvalidArgumentError: it is none, is cut short, or has
    other samples than 16-bit PCM."""
    if len(content) < 12 or content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise _wrong(f"Expected RIFF and WAVE at the beginning, found {content[:12]!r}")
    at, form = 12, None
    while at + 8 <= len(content):
        name, size = content[at:at + 4], int.from_bytes(content[at + 4:at + 8], "little")
        at += 8
        # Before a slice, which would be short without a word.
        if size > len(content) - at:
            raise _wrong(f"the part {name!r} at byte {at - 8} claims {size} bytes, where "
                         f"{len(content) - at} are left")
        if name == b"fmt ":
            form = _format(content[at:at + size])
        elif name == b"data":
            if form is None:
                raise _wrong("the samples come before their format")
            channels, rate = form
            # What is left of a frame at the end is dropped.
            frames = size // (2 * channels)
            samples = np.frombuffer(content, "<i2", frames * channels, at)
            return Sound(samples.reshape(frames, channels), rate)
        at += size + size % 2  # parts begin at even places
    raise _wrong("there are no samples")


def _format(part: bytes) -> tuple[int, int]:
    if len(part) < 16:
        raise _wrong(f"a format of {len(part)} bytes")
    code, channels, rate, _, _, bits = _HEAD.unpack_from(part)
    if code == 0xFFFE and len(part) >= 26:  # "extensible": the code stands in the extension
        code = int.from_bytes(part[24:26], "little")
    if code != 1 or bits != 16:
        raise _wrong(f"Can only read 16-bit PCM; got format {code} of {bits} bits")
    if not channels or not 0 < rate < 1 << 31:
        raise _wrong(f"{channels} channels at a rate of {rate}")
    return channels, rate


def decode_wav(contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1,
               name: str | None = None) -> tuple[Tensor, Tensor]:
    """(audio, sample rate) of a WAV file: float32 [time, channels] in [-1, 1), and an int32. Raises
    InvalidArgumentError: the bytes are no WAV file of 16-bit samples, or are cut short.

    Args:
        desired_channels: the first is repeated, or the last are left out, to have so many; -1 for
            as many as there are.
        desired_samples: zeros are added, or the end is left out, to have so many; -1 for all.
    """
    count = as_int(desired_samples, "decode_wav: desired_samples")
    width = as_int(desired_channels, "decode_wav: desired_channels")

    def run(content: np.ndarray) -> list[object]:
        samples, rate = parsed(content.item())
        if 0 <= count < len(samples):
            samples = samples[:count]
        channels = samples.shape[1] if width < 0 else width
        spec = Spec((max(len(samples), count), channels), dtypes.float32)
        with room_for("decode_wav", spec):
            sound = np.zeros(spec.shape, np.float32)
        sound[:len(samples)] = samples[:, np.minimum(np.arange(channels), samples.shape[1] - 1)]
        # TensorFlow's scale: -32768 becomes -1, and 32767 a little less than 1.
        return [sound / np.float32(32768), np.int32(rate)]

    # Only then a trace knows the shape: else the file says it, at the call.
    known = width >= 0 and count >= 0
    audio, rate = step("decode_wav", run, [single("decode_wav", contents)], [
        Spec((count, width), dtypes.float32) if known else dtypes.float32,
        Spec((), dtypes.int32)])
    return WavAudio(audio, rate)


class WavAudio(NamedTuple):
    """What `decode_wav` gives."""

    audio: Tensor
    sample_rate: Tensor


def wav_bytes(audio: np.ndarray, rate: int) -> bytes:
    """A WAV file of samples [time, channels] in [-1, 1]. Raises InvalidArgumentError: another
    shape, or a rate that is no positive number."""
    if audio.ndim != 2 or not 0 < audio.shape[1] < 1 << 16:
        raise InvalidArgumentError(f"encode_wav: audio must be [time, channels]; got "
                                   f"{list(audio.shape)}")
    # The head has four bytes for the bytes of a second.
    if not 0 < rate * audio.shape[1] * 2 < 1 << 32:
        raise InvalidArgumentError(f"encode_wav: sample_rate must be positive, and the bytes of a "
                                   f"second fewer than 2^32; got {rate} for {audio.shape[1]} "
                                   f"channels")
    # Halves are rounded away from zero, as C's roundf does.
    scaled = np.nan_to_num(audio) * np.float32(32768)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    data = np.clip(rounded, -32768, 32767).astype("<i2").tobytes()
    channels = audio.shape[1]
    head = _HEAD.pack(1, channels, rate, rate * channels * 2, channels * 2, 16)
    return b"".join((b"RIFF", struct.pack("<I", 36 + len(data)), b"WAVEfmt ",
                     struct.pack("<I", 16), head, b"data", struct.pack("<I", len(data)), data))


def encode_wav(audio: TensorLike, sample_rate: SupportsIndex, name: str | None = None) -> Tensor:
    """A WAV file of 16-bit samples of float32 [time, channels] in [-1, 1], as a scalar of strings.
    Raises InvalidArgumentError: another shape, or a rate that is no positive number."""
    rate = convert(sample_rate)
    if rate.ndim or not rate.dtype.is_integer:
        raise InvalidArgumentError(f"encode_wav: sample_rate must be an integer scalar; got "
                                   f"{rate.spec}")
    return step("encode_wav", lambda a, r: [wav_bytes(a, int(r))],
                [convert(audio, dtypes.float32), rate], [Spec((), dtypes.string)])[0]
