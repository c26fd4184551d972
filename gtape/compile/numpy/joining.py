"""Text of groups: what many small clusters do, once, on arrays laid one after another."""

from __future__ import annotations

from collections.abc import Sequence

from gtape.compile.numpy.blocks import Piece, written
from gtape.compile.numpy.clusters import JoinedClusters
from gtape.compile.numpy.names import Names
from gtape.compile.numpy.values import ArrayValue, UfuncStep


def joined_lines(names: Names, group: JoinedClusters, used: set[int]) -> list[str]:
    """The members as one. `used`: ids of values that anybody reads."""
    joining = _Joining(names, group)
    lines = [*joining.laid(), *written(joining.piece())]
    for whole, values in joining.made():
        lines += _cut(names, whole, values, used)
    return lines


class _Joining:
    def __init__(self, names: Names, group: JoinedClusters) -> None:
        self._names, self._group = names, group
        #: By the id of a value of the first member, that of all members together.
        self._whole: dict[int, ArrayValue] = {}
        self._steps: list[UfuncStep] = []

    def laid(self) -> list[str]:
        """What the members read, one after another."""
        members = [m.reads for m in self._group.members]
        lines = []
        for parts in zip(*members):
            if parts[0].shape:
                whole = ArrayValue((self._group.size,), parts[0].dtype)
                self._whole[id(parts[0])] = whole
                lines.append(self._laid(whole, parts))
        return lines

    def _laid(self, whole: ArrayValue, parts: Sequence[ArrayValue]) -> str:
        names = self._names
        texts = [names.text(v) if len(v.shape) == 1 else f"{names.text(v)}.ravel()" for v in parts]
        return f"{names.give(whole)} = concatenate(({', '.join(texts)}))"

    def piece(self) -> Piece:
        """The steps of the first member on what is laid out."""
        whole, shape = self._whole, (self._group.size,)
        for step in self._group.members[0].steps:
            assert isinstance(step, UfuncStep)
            inputs = [whole.get(id(v), v) for v in step.inputs]
            made = step.outputs[0]
            self._steps.append(type(step)(step.function, inputs, shape, made.dtype))
            whole[id(made)] = self._steps[-1].outputs[0]
        results = {id(value) for value, _ in self.made()}
        return Piece(self._names, self._steps, shape, results, {})

    def made(self) -> list[tuple[ArrayValue, list[ArrayValue]]]:
        """Values that others read: of all members together, and of each."""
        return [(self._steps[at].outputs[0], [m.steps[at].outputs[0] for m in self._group.members])
                for at in self._group.kept]


def _cut(names: Names, whole: ArrayValue, values: Sequence[ArrayValue],
         wanted: set[int]) -> list[str]:
    """The parts of an array that somebody reads."""
    lines, start = [], 0
    for value in values:
        end = start + value.size
        if id(value) in wanted:
            shape = "" if len(value.shape) == 1 else f".reshape({value.shape!r})"
            lines.append(f"{names.give(value)} = {names.text(whole)}[{start}:{end}]{shape}")
        start = end
    return lines
