"""Turns samples into one table and one JSON file, with what is needed to judge them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import GTAPE, NUMPY, ROOT, MachineUse, Peer, Samples, measure

RESULTS = Path(__file__).resolve().parent / "results"
DISTRIBUTIONS = ("numpy", "gtape", "torch", "tensorflow", "tensorflow-cpu", "jax", "autograd")


@dataclass(frozen=True)
class Row:
    """How a program's cost is shown: `factor * cost`, or `factor / cost` when it is a rate.

    `floor`: the numpy column does the same work by hand, so multiples of it are shown as well.
    """

    program: str
    unit: str
    factor: float = 1.0
    rate: bool = False
    floor: bool = False

    def shown(self, cost: float) -> str:
        value = self.factor / cost if self.rate else self.factor * cost
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def summary(samples: Samples, row: Row) -> dict[str, dict[str, float]]:
    """Per column: median and best cost, and the median as a multiple of gtape's and NumPy's."""
    costs = samples.costs.get(row.program, {})
    columns = {name: {"median": median(c)} for name, c in costs.items()}
    medians = {name: entry["median"] for name, entry in columns.items()}
    bases = [GTAPE.column, NUMPY.column] if row.floor else [GTAPE.column]
    for name, entry in columns.items():
        if len(costs[name]) > 1:
            entry["best"] = min(costs[name])
        for base in bases:
            if medians.get(base):
                entry[f"x {base}"] = entry["median"] / medians[base]
    return columns


def table_lines(samples: Samples, rows: Sequence[Row], peers: Sequence[Peer]) -> list[list[str]]:
    """The table's cells: a header, and for every row its median, best and ratios."""
    columns = [peer.column for peer in peers]
    lines = [["", "", *columns]]
    for row in rows:
        found = summary(samples, row)
        label = f"{row.program}, {row.unit}"
        for kind in ("median", "best", f"x {GTAPE.column}", f"x {NUMPY.column}"):
            if not any(kind in entry for entry in found.values()):
                continue
            shape = row if kind in ("median", "best") else Row(row.program, "")
            values = [found.get(column, {}).get(kind) for column in columns]
            cells = ["-" if value is None else shape.shown(value) for value in values]
            lines.append([label, kind, *cells])
            label = ""
    return lines


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """An aligned Markdown table: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def text(line: Sequence[str]) -> str:
        words = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
        numbers = [cell.rjust(w) for cell, w in zip(line[2:], widths[2:], strict=True)]
        return "| " + " | ".join(words + numbers) + " |"

    rule = ["-" * width for width in widths[:2]] + ["-" * (w - 1) + ":" for w in widths[2:]]
    return "\n".join([text(lines[0]), text(rule), *map(text, lines[1:])])


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The checkout's commit, `+changes` when the files differ from it; None outside of git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ".", ":!benchmarks/results")
        return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def circumstances() -> dict[str, Any]:
    """Date, machine, versions and commit; nothing that names the host or its folders."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "system": platform.system()},
        "versions": versions(),
        "commit": commit(),
    }


def heading(title: str, facts: dict[str, Any]) -> str:
    machine = facts["machine"]
    named = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    place = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"
    return f"{title}\n\n{facts['date']}; {place}; {named}; commit {facts['commit'] or 'none'}."


def notes(samples: Samples) -> list[str]:
    lines = [f"{column}: {why}, skipped." for column, why in samples.skipped.items()]
    if samples.others is not None:
        lines.append(f"Other processes had {samples.others:.0%} of the machine during the run.")
    return lines + [f"FAILED {line}" for line in samples.failed]


def first_lines(samples: Samples, peers: Sequence[Peer]) -> list[list[str]]:
    """The cells of the table of first calls, in seconds: tracing and compiling are part of them."""
    columns = [peer.column for peer in peers]
    rows = [
        [name, "s", *(f"{found[c]:.3g}" if c in found else "-" for c in columns)]
        for name, found in samples.first.items()
    ]
    return [["first call", "", *columns], *rows]


def write(
    name: str,
    title: str,
    samples: Samples,
    rows: Sequence[Row],
    peers: Sequence[Peer],
    remarks: Sequence[str] = (),
) -> str:
    """Write results/<name>.md, whose text is returned, and results/<name>.json."""
    tables = [markdown(table_lines(samples, rows, peers))]
    if samples.first:
        tables.append(markdown(first_lines(samples, peers)))
    entries = [
        asdict(row)
        | {
            "columns": summary(samples, row),
            "costs": samples.costs.get(row.program),
            "first": samples.first.get(row.program),
        }
        for row in rows
    ]
    text, record = document(name, title, samples, tables, entries, remarks)
    save(name, text, record)
    return text


def publish(
    name: str,
    title: str,
    samples: Samples,
    rows: Sequence[Row],
    peers: Sequence[Peer],
    remarks: Sequence[str] = (),
) -> int:
    """Write the results and print the table; the exit status: 1 if a peer failed."""
    print(write(name, title, samples, rows, peers, remarks))
    return 1 if samples.failed else 0


def one_by_one(
    benchmark: str,
    title: str,
    rows: Sequence[Row],
    peers: Sequence[Peer],
    remarks: Sequence[str],
    *,
    rounds: int,
    turn_seconds: float,
) -> int:
    """Measure a row's program in processes that end before the next row, since all peers' at once
    fill a small machine, with empty caches; and publish. What is measured is written meanwhile."""
    samples, use, text = Samples(), MachineUse(), ""
    for done, row in enumerate(rows, 1):
        print(f"{row.program} ...", file=sys.stderr, flush=True)
        with TemporaryDirectory() as folder:
            samples.merge(
                measure(
                    f"{benchmark}:{row.program}",
                    peers,
                    rounds=rounds,
                    turn_seconds=turn_seconds,
                    caches=Path(folder),
                )
            )
        samples.others = use.others()
        text = write(benchmark, title, samples, rows[:done], peers, remarks)
    print(text)
    return 1 if samples.failed else 0


def document(
    name: str,
    title: str,
    samples: Samples,
    tables: Sequence[str],
    entries: Sequence[dict[str, Any]],
    remarks: Sequence[str],
) -> tuple[str, dict[str, Any]]:
    """What is read and what is kept: Markdown of heading, tables and remarks; and the record."""
    facts = circumstances()
    remarks = [*remarks, *notes(samples)]
    text = "\n\n".join([f"# {heading(title, facts)}", *tables, *remarks]) + "\n"
    return text, {"benchmark": name, **facts, "rows": entries, "remarks": remarks}


def save(name: str, text: str, record: dict[str, Any]) -> None:
    """Write results/<name>.md and results/<name>.json."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
