"""Jobs in several processes, of which one may crash without taking the others' results along; and
kernels compiled by them for GPU:0 before their checks run: a GPU's checks run in one process, where
they would be compiled one by one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices import cache
from gtape.devices.cuda.runtime import cubins, nvrtc
from gtape.devices.cuda.runtime.cupy_loader import architecture
from gtape.devices.cuda.runtime.kernel import Kernel


class Ended(NamedTuple):
    """A job's process ended without a result."""

    reason: str


def outcomes(work: Callable[[Any], Any], jobs: Sequence[object],
             workers: int) -> Iterator[tuple[Any, Any]]:
    """(job, `work(job)`), as they come; `Ended` for a job that brought its process down. One
    worker works in this process."""
    # In this process a debugger and coverage see the work, and no interpreter is started.
    if workers < 2 or len(jobs) < 2:
        yield from ((job, work(job)) for job in jobs)
        return
    again = []
    with _pool(min(workers, len(jobs))) as pool:
        futures: dict[Future[Any], Any] = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                # One crash ends all that were waiting or at work.
                again.append(futures[future])
    for job in again:
        yield job, _alone(work, job)


def _alone(work: Callable[[Any], Any], job: int) -> int | Ended:
    with _pool(1) as pool:
        try:
            return pool.submit(work, job).result()
        except BrokenProcessPool:
            return Ended("the process that worked on it crashed")


def _pool(workers: int) -> ProcessPoolExecutor:
    # A forked child would share the parent's libraries in whatever state its threads left them.
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


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
    for _ in outcomes(_compile_ahead, list(_ahead_jobs(missing, arch, major)), workers):
        pass


def _ahead_jobs(kernels: Iterable[Kernel], arch: str, major: int) -> Iterator[AheadJob]:
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


def _compile_ahead(job: AheadJob) -> str:
    """What the compiler complains of; empty where it does not."""
    try:
        kernels = [Kernel(job.text, entry) for entry in job.entries]
        cubins.keep(kernels, job.arch, nvrtc.find(job.major))
    except KernelError as error:
        return str(error)
    return ""
