"""The workloads of the compiled benchmark, their goals, and the two tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.harness import GTAPE, Peer, Samples
from benchmarks.programs.compiled.columns import TORCH_COMPILE
from benchmarks.programs.compiled.gpt_problem import SIZES
from benchmarks.report import Row


@dataclass(frozen=True)
class Workload(Row):
    """A row of the table, made by `programs/compiled/<module>.py: program(column, argument)`.

    `goal`: how many times as fast as the best peer gtape is to be; `at_most`: the goal is a cost.
    """

    module: str = ""
    argument: str = ""
    goal: float = 1.0
    at_most: bool = False

    @property
    def number(self) -> str:
        return self.program.partition(" ")[0]

    def goal_text(self) -> str:
        return f"<= {self.goal:g} {self.unit}" if self.at_most else f"{self.goal:g}x"

    def met(self, cost: float, best_peer: float | None) -> bool | None:
        """Whether gtape's cost meets the goal; None where there is nothing to compare with."""
        if self.at_most:
            return cost <= self.goal
        return None if best_peer is None else best_peer >= self.goal * cost


def timed(program: str, module: str, unit: str, goal: float, argument: str = "") -> Workload:
    factor = {"us": 1e6, "ms": 1e3, "steps/s": 1.0, "tokens/s": float(SIZES.batch * SIZES.time)}
    rate = unit.endswith("/s")
    return Workload(program, unit, factor[unit], rate, False, module, argument, goal)


MEMORY = Workload("W12 chain", "MiB", module="memory", goal=12, at_most=True)
WORKLOADS = (
    timed("W1 ()", "chain", "us", 3, "()"),
    timed("W1 (10,)", "chain", "us", 3, "(10,)"),
    timed("W3 MLP", "mlp", "steps/s", 5, "W3"),
    timed("W4 MLP", "mlp", "ms", 1, "W4"),
    timed("W5 1M", "gelu", "ms", 3, "1M"),
    timed("W5 16M", "gelu", "ms", 4, "16M"),
    timed("W6 attention", "attention", "ms", 1),
    timed("W7 8x8", "conv", "ms", 2.5, "8x8"),
    timed("W7 28x28", "conv", "ms", 1.5, "28x28"),
    timed("W8 GPT", "gpt", "tokens/s", 1.2),
    timed("W9 jacobian", "derivatives", "ms", 1, "jacobian"),
    timed("W9 batch_jacobian", "derivatives", "ms", 1, "batch_jacobian"),
    timed("W9 hessian", "derivatives", "ms", 1, "hessian"),
    timed("W10 embedding", "embedding", "ms", 1.5),
    MEMORY,
)


def verdict(met: bool | None) -> str:
    return "-" if met is None else "met" if met else "missed"


def compared(
    samples: Samples, row: Workload, statistic: Callable[[list[float]], float]
) -> dict[str, Any]:
    """One statistic of a workload: every column's cost, the best peer, its ratio, the verdict."""
    costs = {name: statistic(c) for name, c in samples.costs.get(row.program, {}).items()}
    own = costs.get(GTAPE.column)
    peers = {name: cost for name, cost in costs.items() if name != GTAPE.column}
    best = min(peers, key=peers.__getitem__, default=None)
    ratio = None if own is None or best is None else peers[best] / own
    met = None if own is None else row.met(own, peers[best] if best else None)
    return {"costs": costs, "best peer": best, "x best peer": ratio, "met": met}


def goals_table(
    samples: Samples, rows: Sequence[Workload], peers: Sequence[Peer]
) -> list[list[str]]:
    """Per workload its medians and bests, each with gtape's ratio to the best peer of the run."""
    columns = [peer.column for peer in peers]
    lines = [["", "", *columns, "x best peer", "goal", ""]]
    for row in rows:
        label = f"{row.program}, {row.unit}"
        for kind, statistic in (("median", median), ("best", min)):
            found = compared(samples, row, statistic)
            shown = [found["costs"].get(column) for column in columns]
            cells = ["-" if cost is None else row.shown(cost) for cost in shown]
            ratio = found["x best peer"]
            tail = ["-" if ratio is None else f"{ratio:.2f}", row.goal_text()]
            lines.append([label, kind, *cells, *tail, verdict(found["met"])])
            label = ""
    return lines


def first_call_table(
    samples: Samples, rows: Sequence[Workload], peers: Sequence[Peer]
) -> list[list[str]]:
    """Seconds of the first call; the goal is torch.compile's."""
    columns = [peer.column for peer in peers]
    lines = [["", "", *columns, ""]]
    for row in rows:
        found = samples.first.get(row.program, {})
        if not found:
            continue
        own, mark = found.get(GTAPE.column), found.get(TORCH_COMPILE.column)
        met = None if own is None or mark is None else own <= mark
        cells = [f"{found[column]:.3g}" if column in found else "-" for column in columns]
        lines.append([row.program, "s", *cells, verdict(met)])
    return lines


def entries(samples: Samples, rows: Sequence[Workload]) -> list[dict[str, Any]]:
    """What the JSON file keeps of every workload."""
    return [
        asdict(row)
        | {
            "median": compared(samples, row, median),
            "best": compared(samples, row, min),
            "first": samples.first.get(row.program),
            "costs": samples.costs.get(row.program),
        }
        for row in rows
    ]
