"""What a tape keeps for the backward pass, by op and source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gtape.core.context import SourceLocation, active, resolve
from gtape.core.errors import ResourceExhaustedError
from gtape.core.recording import Record
from gtape.core.tensor import EagerTensor

if TYPE_CHECKING:
    from gtape.autodiff.tape import GradientTape

#: How many lines an error shows.
_SHOWN = 8
_NO_NAMES: Mapping[int, str] = {}


@dataclass(frozen=True)
class KeptByOp:
    """One recorded op: its name, the user's line, and the bytes it keeps that no earlier op did.

    And the names of the Variables that it reads; those of Keras have their paths.
    """

    op: str
    site: SourceLocation
    bytes: int
    variables: tuple[str, ...] = ()

    def __str__(self) -> str:
        read = f"  {', '.join(self.variables)}" if self.variables else ""
        return f"{self.bytes:>12,} B  {self.op:<20} {self.site}{read}"


@dataclass(frozen=True)
class MemoryBill:
    """The rows in the order of recording, and their sum."""

    rows: tuple[KeptByOp, ...]

    @property
    def total(self) -> int:
        """Bytes kept altogether; a tensor that several ops keep counts once."""
        return sum(row.bytes for row in self.rows)

    def by_line(self) -> list[tuple[SourceLocation, int]]:
        """Bytes for each source line, largest first."""
        sums: dict[SourceLocation, int] = {}
        for row in self.rows:
            sums[row.site] = sums.get(row.site, 0) + row.bytes
        return sorted(sums.items(), key=lambda item: -item[1])

    def ops_at(self, site: SourceLocation) -> list[str]:
        """The ops that keep something at a line, each once."""
        return list(dict.fromkeys(row.op for row in self.rows if row.site == site and row.bytes))

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.rows), f"{self.total:>12,} B  in all"])


def _tensors(value: object) -> list[EagerTensor]:
    tensors: list[EagerTensor] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, EagerTensor):
            tensors.append(item)
        elif isinstance(item, (tuple, list)):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif hasattr(item, "_inputs"):
            stack.extend(item._inputs)
    return tensors


def _owner(array: object) -> Any:
    """The array whose memory `array` shows."""
    # Views share their memory: what a reshape keeps is not counted a second time.
    base = getattr(array, "base", None)
    while base is not None and getattr(base, "base", None) is not None:
        base = base.base
    return array if base is None or not hasattr(base, "nbytes") else base


def memory(tape: GradientTape) -> MemoryBill:
    """The bill of a tape."""
    names = {key: variable.name.removesuffix(":0") for variable in tape.watched_variables()
             for key in tape._keys_of(variable)}
    return bill(tape._records, names)


def exhausted(error: BaseException, where: str, records: Sequence[object],
              ) -> ResourceExhaustedError:
    """What to raise when memory ran out: it says what the tapes hold, by line and op."""
    held = bill(records)
    text = f"{where}: {error}"
    if held.total:
        lines = [f"  {size / 2**20:10.1f} MiB  {', '.join(held.ops_at(site))}  {site}"
                 for site, size in held.by_line()[:_SHOWN] if size]
        text += (f"\nThe tape holds {held.total / 2**20:.1f} MiB for the backward pass, most of "
                 f"it from\n" + "\n".join(lines) + "\ntape.memory() lists all of it; a smaller "
                 "batch, tf.recompute_grad around a block, and tape.stop_recording() hold less")
    return ResourceExhaustedError(text)


def exhausted_now(error: BaseException, where: str) -> ResourceExhaustedError:
    """`exhausted` for the tapes that are recording in this thread."""
    return exhausted(error, where, [r for t in active() if t.is_tape for r in t._records])


def bill(records: Sequence[Any], names: Mapping[int, str] = _NO_NAMES) -> MemoryBill:
    """The bill of records, with the names of variables by the keys of their values."""
    seen: set[int] = set()
    rows = []
    for record in map(Record.of, records):
        size = 0
        for tensor in _tensors(record.payload):
            owner = _owner(tensor._a)
            # What several records keep is charged to the first, so that the rows add up.
            if id(owner) not in seen:
                seen.add(id(owner))
                size += owner.nbytes
        read = tuple(names[key] for key in record.inputs if key in names)
        rows.append(KeptByOp(record.op.name.rstrip("_"), resolve(record.code, record.offset), size,
                             read))
    return MemoryBill(tuple(rows))
