"""Jobs in several processes, of which one may crash without taking the others' results along."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """A job's process ended without a result."""

    reason: str


def outcomes(work: Callable[[Any], Any], jobs: Sequence[object],
             workers: int) -> Iterator[tuple[Any, Any]]:
    """(job, `work(job)`), as they come; `Ended` for a job that brought its process down. One
    worker works in this process."""
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
