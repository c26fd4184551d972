"""Compiled kernels, kept in memory and on disk.

A file holds a heading, a checksum, the kernel's symbol and the image, so that a damaged one is
known as such and made again. Nothing in it is executed on reading.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from gtape.devices import cache
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel

KIND = "cubins"
_HEADING = b"gtape cubin 1"


class Cubin(NamedTuple):
    """Machine code, or PTX, of one kernel, and the kernel's symbol in it."""

    image: bytes
    name: str


# By the name of the file, so that GPUs of one architecture share an image; as many as a program has
# kernels, which is some hundred.
_kept: dict[str, Cubin] = {}


def cubin(kernel: Kernel, arch: str, compiler: nvrtc.Nvrtc | None = None) -> Cubin:
    """The compiled `kernel` for `arch` ("sm_90", or "compute_90" for PTX), compiled where it is in
    neither cache. What cannot be written to disk is compiled again by the next process. Raises
    KernelError: it does not compile; UnavailableError: there is no NVRTC."""
    compiler = compiler or nvrtc.find()
    key = file_name(kernel, arch, compiler.version)
    kept = _kept.get(key) or unpacked(cache.read(KIND, key))
    if kept is None:
        compiled = compiler.compile(kernel.text, [kernel.entry], arch)
        kept = Cubin(compiled.image, compiled.names[kernel.entry])
        cache.write(KIND, key, packed(kept))
    _kept[key] = kept
    return kept


def keep(kernels: Sequence[Kernel], arch: str, compiler: nvrtc.Nvrtc) -> None:
    """Compile kernels of one text at once, so that `cubin` finds each of them on disk. Only those
    that are no templates get the same image so: it holds all such kernels of a text anyway. Raises
    KernelError: they do not compile."""
    compiled = compiler.compile(kernels[0].text, [k.entry for k in kernels], arch)
    for kernel in kernels:
        cache.write(KIND, file_name(kernel, arch, compiler.version),
                    packed(Cubin(compiled.image, compiled.names[kernel.entry])))


def file_name(kernel: Kernel, arch: str, version: str) -> str:
    """The name of the kernel's file: of all that the image depends on."""
    # The heading counts the form of the files: another number, and older ones are not found.
    return cache.key(_HEADING.decode(), version, arch, *nvrtc.FLAGS, kernel.entry, kernel.text)


def packed(kept: Cubin) -> bytes:
    """The content of a file."""
    body = kept.name.encode() + b"\n" + kept.image
    return b"\n".join((_HEADING, hashlib.sha256(body).hexdigest().encode(), body))


def unpacked(data: bytes | None) -> Cubin | None:
    """What a file holds; None where it is damaged or missing."""
    heading, _, rest = (data or b"").partition(b"\n")
    checksum, _, body = rest.partition(b"\n")
    if heading != _HEADING or hashlib.sha256(body).hexdigest().encode() != checksum:
        return None
    name, _, image = body.partition(b"\n")
    return Cubin(image, name.decode())


def forget() -> None:
    """Empty the memory; the disk is left alone."""
    _kept.clear()
