"""Kernels compiled for GPU:0 before their checks run, by all processors: a GPU's checks run in one
process, where they would be compiled one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices import cache
from gtape.devices.cuda.runtime import cubins, nvrtc
from gtape.devices.cuda.runtime.cupy_loader import architecture
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.pool import outcomes


class AheadJob(NamedTuple):
    """Kernels of one text that are compiled at once, by the NVRTC of the CUDA version `major`."""

    text: str
    entries: tuple[str, ...]
    arch: str
    major: int


def compile_ahead(kernels: Iterable[Kernel], cupy: Any, workers: int) -> None:
    """Fill the cache of `cubins` for GPU:0, where there is one. What does not compile is left to
    who asks for it."""
    if cache.state()[1]:
        return
    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    try:
        compiler = nvrtc.find(major)
        arch = architecture(int(cupy.cuda.Device(0).compute_capability), compiler)
    except UnavailableError:
        return
    missing = [k for k in kernels if cache.read(
        cubins.KIND, cubins.file_name(k, arch, compiler.version)) is None]
    for _ in outcomes(_compile, list(_jobs(missing, arch, major)), workers):
        pass


def _jobs(kernels: Iterable[Kernel], arch: str, major: int) -> Iterator[AheadJob]:
    together: dict[str, list[str]] = {}
    for kernel in kernels:
        # Templates are compiled one by one, since an image of several would differ from that of
        # each alone.
        if "<" in kernel.entry:
            yield AheadJob(kernel.text, (kernel.entry,), arch, major)
        else:
            together.setdefault(kernel.text, []).append(kernel.entry)
    for text, entries in together.items():
        yield AheadJob(text, tuple(entries), arch, major)


def _compile(job: AheadJob) -> str:
    """What the compiler complains of; empty where it does not."""
    try:
        kernels = [Kernel(job.text, entry) for entry in job.entries]
        cubins.keep(kernels, job.arch, nvrtc.find(job.major))
    except KernelError as error:
        return str(error)
    return ""
