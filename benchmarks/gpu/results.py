"""What was measured, what it says of the marks, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gpu.calibration import BFLOAT16_PRODUCT, Measure, bandwidth
from benchmarks.gpu.peers import OURS, PEERS, TORCH
from benchmarks.gpu.workload import COPY, Mark, Phase, Workload
from benchmarks.report import markdown


@dataclass
class Results:
    """Everything so far: `timings[workload number][phase][column]` as `Timing.record` gives it."""

    measures: list[Measure] = field(default_factory=list)
    timings: dict[str, dict[str, dict[str, dict[str, float]]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, number: str, column: str, timings: dict[str, dict[str, float]]) -> None:
        phases = self.timings.setdefault(number, {})
        for phase, timing in timings.items():
            phases.setdefault(phase, {})[column] = timing

    def median(self, number: str, phase: str, column: str) -> float | None:
        found = self.timings.get(number, {}).get(phase, {}).get(column)
        return None if found is None else found["median"]


@dataclass(frozen=True)
class Verdict:
    """What `mark` says of one of gtape's columns; `met` is None where a number is missing."""

    mark: Mark
    column: str
    value: float | None
    met: bool | None

    def __str__(self) -> str:
        if self.mark.against == COPY:
            asked = f">= {self.mark.limit:g} of {COPY}"
        else:
            asked = f"<= {self.mark.limit:g} x {self.mark.against}"
        if self.met is None:
            return f"{self.column} {asked}: not measured"
        return f"{self.column} {asked}: {'met' if self.met else 'MISSED'} ({self.value:.2f})"


def fraction_of_copy(results: Results, phase: Phase, median: float | None) -> float | None:
    """The bandwidth that a phase has reached, counting what it has to move, as part of a copy's."""
    rate = bandwidth(results.measures)
    if not phase.bytes or not median or rate is None:
        return None
    return phase.bytes / median / rate


def verdict(results: Results, number: str, phase: Phase, mark: Mark, column: str) -> Verdict:
    """Whether a column meets a mark."""
    own = results.median(number, phase.name, column)
    if mark.against == COPY:
        value = fraction_of_copy(results, phase, own)
        return Verdict(mark, column, value, None if value is None else value >= mark.limit)
    other = results.median(number, phase.name, mark.against)
    value = own / other if own and other else None
    return Verdict(mark, column, value, None if value is None else value <= mark.limit)


def verdicts(results: Results, workload: Workload, phase: Phase) -> list[Verdict]:
    """Every mark of a phase, for each of gtape's columns that has it."""
    columns = [c for c in OURS if c in workload.columns]
    return [verdict(results, workload.number, phase, m, c) for m in phase.marks for c in columns]


def floor(results: Results, phase: Phase) -> float | None:
    """Seconds that the card needs at least, by what G0 has measured; None: unknown."""
    if phase.bytes and (rate := bandwidth(results.measures)) is not None:
        return phase.bytes / rate
    speeds = [m.value * 1e12 for m in results.measures if m.name.startswith(BFLOAT16_PRODUCT)]
    return phase.flops / speeds[0] if phase.flops and speeds else None


def shown(seconds: float | None, operations: int = 1) -> str:
    """Microseconds per operation, in three digits."""
    if seconds is None:
        return "-"
    value = seconds * 1e6 / operations
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def phases(workloads: Sequence[Workload]) -> list[tuple[Workload, Phase]]:
    return [(workload, phase) for workload in workloads for phase in workload.phases]


def times_table(results: Results, workloads: Sequence[Workload]) -> str:
    """Medians in microseconds, with gtape's as parts of a copy and multiples of torch's."""
    lines = [["", "phase", "floor", *PEERS, "of copy", "x torch"]]
    for workload, phase in phases(workloads):
        number = workload.number
        medians = {column: results.median(number, phase.name, column) for column in PEERS}
        ours = [medians[c] for c in OURS if c in workload.columns]
        torch = medians[TORCH]
        lines.append(
            [
                f"{number}: {workload.title}",
                phase.name,
                shown(floor(results, phase), phase.operations),
                *[shown(m, phase.operations) for m in medians.values()],
                " / ".join(ratio(fraction_of_copy(results, phase, m)) for m in ours),
                " / ".join(ratio(m / torch if m and torch else None) for m in ours),
            ]
        )
    return markdown(lines)


def details_table(results: Results, workloads: Sequence[Workload]) -> str:
    """Per measurement: the spread, all steps by the wall clock, and the time to issue them."""
    lines = [["", "column", "median", "10 %", "90 %", "wall", "host", "steps"]]
    for workload, phase in phases(workloads):
        found = results.timings.get(workload.number, {}).get(phase.name, {})
        for column, timing in found.items():
            parts = ("median", "low", "high", "wall", "host")
            cells = [shown(timing[part], phase.operations) for part in parts]
            label = f"{workload.number}, {phase.name}"
            lines.append([label, column, *cells, str(int(timing["samples"]))])
    return markdown(lines)


def measures_table(results: Results) -> str:
    lines = [["G0", "unit", "value"]]
    lines += [[m.name, m.unit, f"{m.value:.3g}"] for m in results.measures]
    return markdown(lines)


def marks_text(results: Results, workloads: Sequence[Workload]) -> str:
    """A list of all marks, met or not."""
    return "\n".join(
        f"* {workload.number}, {phase.name}: {found}"
        for workload, phase in phases(workloads)
        for found in verdicts(results, workload, phase)
    )


def record(results: Results, workloads: Sequence[Workload]) -> dict[str, Any]:
    """Everything as JSON."""
    rows = [
        {
            "workload": workload.number,
            "title": workload.title,
            "phase": phase.name,
            "operations": phase.operations,
            "bytes": phase.bytes,
            "flops": phase.flops,
            "floor": floor(results, phase),
            "timings": results.timings.get(workload.number, {}).get(phase.name, {}),
            "marks": [
                {"column": v.column, "limit": v.mark.limit, "against": v.mark.against,
                 "value": v.value, "met": v.met}
                for v in verdicts(results, workload, phase)
            ],
        }
        for workload, phase in phases(workloads)
    ]
    return {
        "measures": [m._asdict() for m in results.measures],
        "rows": rows,
        "skipped": results.skipped,
        "failed": results.failed,
        "notes": results.notes,
    }
