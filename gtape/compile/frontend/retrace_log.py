"""The diary of a function's traces: what each was made for, and why the one before did not do.

    1. x: float32[2,3]
       traced at model.py:12: step(x); called 3 times
    2. x: float32[4,3]
       traced at model.py:12: step(x); called 1 time
       changed since 1: argument 'x': shape (2, 3) -> (4, 3)
       instead: give input_signature with None for that length, …
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gtape.compile.frontend.signature import Arguments, array_like, named_leaves
from gtape.core.context import SourceLocation, resolve
from gtape.core.convert import convert
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.core.type_specs import TensorSpec
from gtape.core.variable import is_variable

TENSOR, NUMBER, PYTHON, VARIABLE, OBJECT = "tensor", "number", "python", "variable", "object"

_ADVICE = {
    "shape": "give input_signature with None for that length, as in tf.TensorSpec({spec}), or "
             "reduce_retracing=True; or pad to one length",
    "dtype": "pass one dtype, as with tf.cast({name}, tf.{dtype})",
    "number": "pass a tensor instead of a Python number: tf.constant({value})",
    "python": "pass the same value every time, or make one tf.function for each",
    "object": "keep one object and pass it every time; where the tf.function is made in a loop, "
              "make it once before the loop",
    "structure": "pass arguments of one structure, with the same keys and lengths",
    "device": "make the tensors on one device",
}


class ArgumentLeaf(NamedTuple):
    """What is noted of an argument: no reference to it."""

    name: str
    kind: str
    text: str
    dtype: str = ""
    dims: Any = ()
    device: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def _lengths(dims: tuple[int, ...]) -> str:
    return "unknown" if dims is None else str(tuple(dims))


def _leaf(name: str, value: Any) -> ArgumentLeaf:
    if array_like(value):
        value = convert(value)
    if isinstance(value, (Tensor, TensorSpec)):
        dims = value.shape.dims
        inner = "..." if dims is None else ",".join(str(n) for n in dims)
        device = "" if isinstance(value, TensorSpec) else value.device
        return ArgumentLeaf(name, TENSOR, f"{value.dtype.name}[{inner}]", value.dtype.name, dims,
                            device)
    if is_variable(value):
        return ArgumentLeaf(name, VARIABLE, f"Variable '{value.name}'")
    # A bool is mostly a flag that chooses code, and no number to make a tensor of.
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return ArgumentLeaf(name, NUMBER, repr(value))
    if value is None or isinstance(value, (bool, str, bytes)):
        return ArgumentLeaf(name, PYTHON, f"{shown(value)}")
    return ArgumentLeaf(name, OBJECT, f"{type(value).__name__} object")


def note_leaves(names: Sequence[str], arguments: Arguments) -> tuple[ArgumentLeaf, ...]:
    """The arguments, as the diary keeps them."""
    return tuple([_leaf(name, value) for name, value in named_leaves(names, arguments)])


class ArgumentChange(NamedTuple):
    """How an argument differs from what an earlier trace was made for."""

    text: str
    advice: str


def _changes(old: ArgumentLeaf | None, new: ArgumentLeaf | None) -> list[ArgumentChange]:
    if old is None or new is None:
        there = old or new
        assert there is not None
        text = f"argument '{there.name}' ({there.text}) is " + ("new" if old is None else "gone")
        return [ArgumentChange(text, _ADVICE["structure"])]
    where = f"argument '{new.name}': "
    if old.kind == new.kind == TENSOR:
        return _tensor_changes(old, new, where)
    if old.kind != new.kind or old.text != new.text:
        advice = new.kind if new.kind in _ADVICE else OBJECT
        return [ArgumentChange(f"{where}{_described(old)} -> {_described(new, old)}",
                               _ADVICE[advice].format(value=new.text))]
    return []


def _described(leaf: ArgumentLeaf, beside: ArgumentLeaf | None = None) -> str:
    if leaf.kind not in (NUMBER, PYTHON):
        return leaf.text
    return leaf.text if beside is not None and beside.kind in (NUMBER, PYTHON) else (
        f"Python value {leaf.text}")


def _tensor_changes(old: ArgumentLeaf, new: ArgumentLeaf, where: str) -> list[ArgumentChange]:
    changes = []
    if old.dtype != new.dtype:
        changes.append(ArgumentChange(f"{where}dtype {old.dtype} -> {new.dtype}",
                                      _ADVICE["dtype"].format(name=new.name, dtype=old.dtype)))
    if old.dims != new.dims:
        open_ = None if (old.dims is None or new.dims is None or len(old.dims) != len(new.dims)
                         ) else [a if a == b else None for a, b in zip(old.dims, new.dims)]
        changes.append(ArgumentChange(f"{where}shape {_lengths(old.dims)} -> {_lengths(new.dims)}",
                                      _ADVICE["shape"].format(spec=f"{open_}, tf.{new.dtype}")))
    if old.device and new.device and old.device != new.device:
        changes.append(ArgumentChange(f"{where}device {old.device} -> {new.device}",
                                      _ADVICE["device"]))
    return changes


def compared(old: Sequence[ArgumentLeaf], new: Sequence[ArgumentLeaf]) -> list[ArgumentChange]:
    """Every change from one list of arguments to another."""
    before, after = ({leaf.name: leaf for leaf in leaves} for leaves in (old, new))
    return [c for name in {**before, **after} for c in _changes(before.get(name), after.get(name))]


#: Where the arguments look the same: an object or variable with an equal description.
_ANOTHER = ArgumentChange("another object or Variable, or another default device",
                          _ADVICE["object"])


@dataclass(eq=False)
class RetraceEntry:
    """A trace: its number, its arguments, the line of the call, and what was new in it."""

    leaves: tuple[ArgumentLeaf, ...]
    code: Any
    offset: int  # in the bytecode: its line is looked up when somebody asks
    number: int = 0
    nearest: int = 0
    changes: list[ArgumentChange] = field(default_factory=list)
    calls: int = 0

    @property
    def site(self) -> SourceLocation:
        """The line of the call that made the trace."""
        return resolve(self.code, self.offset)

    @property
    def signature(self) -> str:
        return ", ".join(map(str, self.leaves)) or "no arguments"

    def compare(self, earlier: Sequence[RetraceEntry]) -> None:
        """Note what changed from the most similar of the earlier traces, the latest of equals."""
        # The most similar, since what changed from it is most likely what its user could have kept.
        best: list[ArgumentChange] | None = None
        for other in reversed(earlier):
            changes = compared(other.leaves, self.leaves)
            if best is None or len(changes) < len(best):
                best, self.nearest = changes, other.number
        self.changes = [_ANOTHER] if best == [] else best or []

    def __str__(self) -> str:
        site = self.site
        lines = [f"{self.number}. {self.signature}",
                 f"   traced at {site}" + (f": {site.text}" if site.text else "")
                 + f"; called {self.calls} time{'' if self.calls == 1 else 's'}"]
        for change in self.changes:
            lines += [f"   changed since {self.nearest}: {change.text}",
                      f"   instead: {change.advice}"]
        return "\n".join(lines)


class RetraceLog(Sequence[RetraceEntry]):
    """The traces of one function, oldest first; printing it shows them."""

    def __init__(self, name: str, entries: Sequence[RetraceEntry]) -> None:
        self.name = name
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RetraceEntry]:
        return iter(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __str__(self) -> str:
        count = len(self._entries)
        head = f"{self.name}: {count} trace{'' if count == 1 else 's'}"
        return "\n".join([head, *map(str, self._entries)])

    __repr__ = __str__


class RetraceWatch:
    """Notices when a function is traced again and again: five of its last ten calls."""

    # The numbers of TensorFlow's warning of the same kind.
    _TRACES, _CALLS = 5, 10

    def __init__(self) -> None:
        self._at: deque[int] = deque(maxlen=self._TRACES)

    def often(self, calls: int) -> bool:
        """Note a retrace in call number `calls`; whether that is one too many."""
        self._at.append(calls)
        if len(self._at) < self._TRACES or calls - self._at[0] >= self._CALLS:
            return False
        self._at.clear()  # said once: the next five count anew
        return True


def warning(name: str, entry: RetraceEntry) -> str:
    """One line for a function that is traced too often."""
    change = entry.changes[0]
    return (f"{name} was traced again in 5 of its last 10 calls, which costs far more than running "
            f"it; last: {change.text}. To avoid it: {change.advice}. {name}.explain_cache() lists "
            f"all traces")
