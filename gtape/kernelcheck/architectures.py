"""`python -m gtape kernels --compile`: every kernel for every architecture, without a driver.

Kernels of one text are compiled as one program, which costs half of one program each, in several
processes, since NVRTC compiles one program at a time in each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gtape.cli.output import CommandError
from gtape.core.errors import KernelError, UnavailableError
from gtape.devices.cuda.runtime import nvrtc
from gtape.kernelcheck import ARCHITECTURES, ptxas_report
from gtape.kernelcheck.pool import Ended, outcomes
from gtape.kernelcheck.ptxas_report import Proof
from gtape.kernelcheck.sources import KernelSource, all_kernels

#: Kernels of a program: parsing is shared by them, and there are jobs left for the other processes.
_BATCH = 16


class CompileJob(NamedTuple):
    """Kernels of one text, to be compiled for one architecture."""

    file: str
    text: str
    entries: tuple[str, ...]
    arch: str


class Row(NamedTuple):
    """What is known of one kernel and architecture; `seconds` is its share of compiling."""

    file: str
    entry: str
    arch: str
    proof: ptxas_report.Proof | None
    seconds: float
    problems: list[str]


def execute(options: argparse.Namespace) -> int:
    """Compile and report; 0 when there are kernels and none has a problem."""
    try:
        compiler = nvrtc.find()
    except UnavailableError as error:
        raise CommandError(str(error)) from error
    archs = architectures(options.compile, compiler.architectures)
    rows = compile_all(all_kernels(options.names), archs, options.jobs, options.fresh)
    if options.json:
        record = as_json(rows, compiler.version)
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(*report(rows), sep="\n")
    return int(not rows or any(row.problems for row in rows))


def architectures(given: str, known: Sequence[int]) -> list[str]:
    """The architectures of the option: "all", or "sm_75,sm_90". Raises CommandError: NVRTC knows
    one of them not."""
    if given == "all":
        return [f"sm_{number}" for number in ARCHITECTURES if number in known]
    names = [name for name in given.split(",") if name]
    wrong = [n for n in names if not re.fullmatch(r"sm_\d+[af]?", n)
             or int(n[3:].rstrip("af")) not in known]
    if wrong or not names:
        raise CommandError(f"--compile takes architectures that NVRTC knows, such as sm_75,sm_90; "
                           f"got {' '.join(wrong) or 'none'}. It knows "
                           f"{', '.join(f'sm_{n}' for n in known)}")
    return names


def compile_all(sources: Sequence[KernelSource], archs: Sequence[str], workers: int,
                fresh: bool = False) -> list[Row]:
    """A row for each kernel and architecture; what an earlier run has seen is not compiled again,
    unless `fresh`."""
    version = nvrtc.find().version
    rows, missing = [], []
    for source, arch in itertools.product(sources, archs):
        seen = None if fresh else ptxas_report.known(source.kernel, arch, version)
        if seen is None:
            missing.append((source, arch))
        else:
            rows.append(_row(source, arch, seen, 0.0))
    # Processes get texts and names, and give numbers back; which source that was is known here.
    by_entry = {(s.kernel.text, s.kernel.entry, arch): s for s, arch in missing}
    for job, outcome in outcomes(_compile, list(_jobs(missing)), workers):
        _progress(len(rows), len(sources) * len(archs))
        for row in _rows(job, outcome, by_entry):
            rows.append(row)
            if row.proof is not None:
                kernel = by_entry[job.text, row.entry, job.arch].kernel
                ptxas_report.keep(kernel, job.arch, version, row.proof)
    return sorted(rows, key=lambda row: (row.file, row.entry, archs.index(row.arch)))


def _progress(done: int, every: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {every}", end="\r", file=sys.stderr, flush=True)


def _jobs(missing: Sequence[tuple[KernelSource, str]]) -> Iterator[CompileJob]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for source, arch in missing:
        groups.setdefault((source.file, source.kernel.text, arch), []).append(source.kernel.entry)
    for (file, text, arch), entries in groups.items():
        # Kernels that are no templates are compiled with their text, asked for or not.
        size = _BATCH if all("<" in entry for entry in entries) else len(entries)
        for start in range(0, len(entries), size):
            yield CompileJob(file, text, tuple(entries[start: start + size]), arch)


def _compile(job: CompileJob) -> tuple[dict[str, ptxas_report.Proof], float, str]:
    start = time.perf_counter()
    try:
        proofs, problem = ptxas_report.prove(job.text, job.entries, job.arch, nvrtc.find()), ""
    except KernelError as error:
        proofs, problem = {}, str(error)
    return proofs, time.perf_counter() - start, problem


def _rows(job: CompileJob, outcome: tuple[dict[str, Proof], float, str],
          sources: dict[tuple[str, str, str], KernelSource]) -> Iterator[Row]:
    if isinstance(outcome, Ended):
        yield Row(job.file, job.entries[0], job.arch, None, 0.0, [outcome.reason])
        return
    proofs, seconds, problem = outcome
    if problem:
        yield Row(job.file, job.entries[0], job.arch, None, seconds, [problem])
    for entry, seen in proofs.items():
        yield _row(sources[job.text, entry, job.arch], job.arch, seen, seconds / len(proofs))


def _row(source: KernelSource, arch: str, seen: ptxas_report.Proof, seconds: float) -> Row:
    return Row(source.file, source.kernel.entry, arch, seen, seconds,
               ptxas_report.problems(source.kernel, seen))


def report(rows: Sequence[Row]) -> Iterator[str]:
    """The table, file by file, the totals, and every problem in full."""
    yield (f"{'file':<28}{'kernels':>8}{'archs':>6}{'registers':>10}{'stack':>7}{'spills':>7}"
           f"{'wide':>6}{'seconds':>9}")
    for file, group in itertools.groupby(rows, key=lambda row: row.file):
        yield _line(file, list(group))
    yield _line("all", rows)
    kept = sum(row.proof is not None and not row.seconds for row in rows)
    if kept:
        yield (f"{kept} of {len(rows)} were compiled by an earlier run and have not changed; "
               f"--fresh compiles them again")
    broken = [row for row in rows if row.problems]
    for (file, entry), group in itertools.groupby(broken, key=lambda row: (row.file, row.entry)):
        yield f"\n{file}: {entry}"
        for row in group:
            yield from (f"  {row.arch}: {problem}" for problem in row.problems)
    if broken:
        yield f"\n{len(broken)} of {len(rows)} failed. {ptxas_report.ADVICE}"


def _line(name: str, rows: Sequence[Row]) -> str:
    seen = [row.proof for row in rows if row.proof is not None]
    wide = sum(p.wide_loads + p.wide_stores > 0 for p in seen)
    return (f"{name:<28}{len({row.entry for row in rows}):>8}{len({r.arch for r in rows}):>6}"
            f"{max((p.registers for p in seen), default=0):>10}"
            f"{max((p.stack for p in seen), default=0):>7}"
            f"{sum(p.spills for p in seen):>7}{wide:>6}{sum(r.seconds for r in rows):>9.2f}")


def as_json(rows: Sequence[Row], version: str) -> dict[str, object]:
    """All rows for `--json`."""
    return {"nvrtc": version, "kernels": [
        {"file": row.file, "entry": row.entry, "arch": row.arch, "seconds": round(row.seconds, 4),
         "problems": row.problems, **(row.proof._asdict() if row.proof else {})} for row in rows]}
