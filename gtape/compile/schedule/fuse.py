"""Fusion: formulas and reductions over the same elements become one loop.

A *kernel* runs over a domain, the lengths of its axes (those of length 1 left out). Its first
`split` axes are the outer ones, the rest are a *row*. Inside one pass over a row it may use what
was reduced along that row (softmax, norms, losses); what it reduces over the outer axes (the
gradient of a bias) or over all axes (a loss) is finished when the kernel is, for others to read.

Nodes join the kernel of what they read where that is sound: nothing outside the kernel may lie
between. What a value's axes are in the domain is its *place*: a domain axis for each axis of the
value, None where the value has length 1 or repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.nodes import (
    Elem,
    Hosted,
    InputNode,
    IrModule,
    IrNode,
    LibraryCall,
    Reduce,
    Shape,
    Value,
    View,
    v_root,
)

Place = tuple[int | None, ...]
#: Rows up to here are gone over several times; longer ones would leave the cache in between.
_ROW = 1 << 14
#: Statements in one kernel, so that compilers keep up.
_NODES = 512
#: Kernels looked at that share nothing but what they read.
#: They are tried for every node: to look at all would take the square of a program's length.
_NEAR = 12


class FusionGroup:
    """What runs as one: a kernel of loops, or one node of another kind."""

    __slots__ = ("after", "domain", "nodes", "number", "place", "reads", "remat_stage", "split")

    def __init__(self, number: int, domain: Shape | None) -> None:
        self.number = number
        #: None for a node that is no loop.
        self.domain = domain
        self.nodes: list[IrNode] = []
        self.place: dict[int, Place] = {}
        self.split: int | None = None
        #: Of what stage its values are: those of a later one are not computed before their time.
        self.remat_stage = 0
        #: The numbers, as bits, of the groups that have to run before.
        self.after = 0
        #: The values from elsewhere that it reads.
        self.reads: set[int] = set()

    @property
    def is_loop(self) -> bool:
        return self.domain is not None

    def kind(self, node: Reduce) -> str:
        """How a reduction in this kernel is finished: at the end of each "row"; or with the kernel:
        for each "column" of it, one number of "all" elements, or one of all "rows"."""
        axes = self.axes(node)
        split = self.split or 0
        rank = len(self.domain or ())
        if axes == set(range(rank)) and split != 0:
            return "all"
        if axes == set(range(split, rank)):
            return "row"
        inner = any(p is not None and p >= split for p in self.place[node.inputs[0].number])
        return "column" if inner else "rows"

    def axes(self, node: Reduce) -> set[int]:
        """The domain axes that a reduction goes over."""
        place = self.place[node.inputs[0].number]
        return {a for i in node.axes if (a := place[i]) is not None}


class Fuser:
    """Assigns nodes to groups."""

    def __init__(self, module: IrModule, *, fused: bool = True) -> None:
        self.module = module
        self.fused = fused
        self.groups: list[FusionGroup] = []
        self.of: dict[int, FusionGroup] = {}
        self._remat_stages = remat_stages(module)
        #: The last step in Python that may refuse its inputs, or does something besides making its
        #: results; or the last premise.
        self._last_effect: FusionGroup | None = None

    def run(self) -> list[FusionGroup]:
        """The groups in an order in which they can run."""
        for node in self.module.nodes:
            if isinstance(node, (Elem, Reduce)):
                self._loop(node)
            elif not isinstance(node, (View, InputNode)):
                self._alone(node)
        return self.ordered()

    # ------------------------------------------------------------------ placing

    def _alone(self, node: IrNode) -> None:
        group = self._new(None)
        self._add(group, node)
        if isinstance(node, Hosted) or (isinstance(node, LibraryCall) and node.premise):
            # A step of a gradient takes indices that are right: after the step that refuses others.
            # Where a premise does not hold, nothing was done that is done after it.
            if self._last_effect is not None:
                self.precede(group, self._last_effect.after | 1 << self._last_effect.number)
            if node.has_side_effect:
                self._last_effect = group

    def _new(self, domain: Shape | None) -> FusionGroup:
        group = FusionGroup(len(self.groups), domain)
        self.groups.append(group)
        return group

    def _loop(self, node: Elem | Reduce) -> None:
        if self.fused:
            for group in self._candidates(node):
                place = self._fits(group, node)
                if place is not None:
                    self._join(group, node, place)
                    return
        shape = node.inputs[0].shape if isinstance(node, Reduce) else node.outputs[0].shape
        group = self._new(tuple(n for n in shape if n != 1))
        group.remat_stage = self._remat_stages[node.outputs[0].number]
        place = self._fits(group, node)
        assert place is not None, node
        self._join(group, node, place)

    def _candidates(self, node: IrNode) -> list[FusionGroup]:
        """The kernels that made what `node` reads, latest first; then some that read the same."""
        found: dict[int, FusionGroup] = {}
        roots = {v_root(v).number for v in node.inputs}
        for number in roots:
            group = self.of.get(number)
            if group is not None and group.is_loop:
                found[group.number] = group
        made = sorted(found.values(), key=lambda g: -g.number)
        near = [g for g in self.groups[-_NEAR:][::-1]
                if g.is_loop and g.number not in found and (g.reads & roots)]
        return made + near

    # ------------------------------------------------------------------ whether a node fits

    def _fits(self, group: FusionGroup, node: Elem | Reduce) -> Any:
        """The places of what a node reads and makes; None where it cannot be in the group."""
        if len(group.nodes) >= _NODES or not self._sound(group, node) or (
                group.remat_stage != self._remat_stages[node.outputs[0].number]):
            return None
        places: dict[int, Place] = {}
        shape = node.inputs[0].shape if isinstance(node, Reduce) else node.outputs[0].shape
        whole = self._whole(group, node, shape, places)
        if whole is None:
            return None
        for value in node.inputs:
            if value.number not in places:
                places[value.number] = _aligned(value, whole, len(shape))
            if group.place.get(value.number, places[value.number]) != places[value.number]:
                return None
        split = group.split
        covered = {p for p in whole if p is not None}
        rank = len(group.domain or ())
        if len(covered) < rank and not (
                split is not None and 0 < split < rank and covered == set(range(split))):
            return None
        if isinstance(node, Reduce):
            split = self._split(group, node, whole)
            if split is None:
                return None
            kept = [None if i in node.axes else p for i, p in enumerate(whole)]
            made = tuple(p for i, p in enumerate(kept) if node.keepdims or i not in node.axes)
        else:
            made = whole
        places[node.outputs[0].number] = made
        return places, split

    def _sound(self, group: FusionGroup, node: IrNode) -> bool:
        """Whether nothing outside the group lies between it and the node, and no reduction that
        ends with the group is read."""
        for value in node.inputs:
            root = v_root(value)
            other = self.of.get(root.number)
            if other is None:
                continue
            if other is not group:
                if other.after >> group.number & 1:
                    return False
            elif _view_axes(value) is None or not self._usable(group, root):
                return False
        return True

    def _usable(self, group: FusionGroup, value: Value) -> bool:
        node = value.node
        if not isinstance(node, Reduce):
            return True
        assert group.domain is not None
        row = math.prod(group.domain[group.split or 0:])
        return group.kind(node) == "row" and row <= _ROW

    def _whole(self, group: FusionGroup, node: IrNode, shape: Shape, places: dict[int, Place],
               ) -> Place | None:
        """The place of an array of `shape`, the node's own, in the group's domain."""
        domain = group.domain
        assert domain is not None
        found: list[int | None] = [None] * len(shape)
        for value in node.inputs:
            root = v_root(value)
            if self.of.get(root.number) is not group:
                continue
            inner = group.place[root.number]
            place = tuple(None if a is None else inner[a] for a in _view_axes(value) or ())
            places[value.number] = place
            offset = len(shape) - len(place)
            for i, p in enumerate(place):
                if p is None:
                    continue
                if found[i + offset] not in (None, p):
                    return None
                found[i + offset] = p
        return _completed(found, shape, domain)

    def _split(self, group: FusionGroup, node: Reduce, whole: Place) -> int | None:
        """Where the domain splits with this reduction in the kernel; None where it cannot be."""
        rank = len(group.domain or ())
        axes = {a for i in node.axes if (a := whole[i]) is not None}
        if not axes:
            return None
        split = group.split
        if axes == set(range(rank)):
            if split is None:
                # A short vector is one row, whose sum the same loop can use; a longer one is cut
                # into blocks, which threads share.
                short = rank == 1 and (group.domain or (0,))[0] <= 4096
                return 0 if short else rank
            return split
        if split is not None and 0 < split < rank:
            ok = axes in (set(range(split)), set(range(split, rank)))
            return split if ok else None
        if split not in (None, rank) and any(isinstance(n, Reduce) for n in group.nodes):
            return None
        low, high = min(axes), max(axes)
        if axes != set(range(low, high + 1)):
            return None
        if high == rank - 1:
            return low
        return high + 1 if low == 0 else None

    # ------------------------------------------------------------------ joining

    def _join(self, group: FusionGroup, node: IrNode, found: Any) -> None:
        places, group.split = found
        group.place.update(places)
        self._add(group, node)

    def _add(self, group: FusionGroup, node: IrNode) -> None:
        group.nodes.append(node)
        before = 0
        for value in node.inputs:
            root = v_root(value)
            group.reads.add(root.number)
            other = self.of.get(root.number)
            if other is not None and other is not group:
                before |= other.after | 1 << other.number
        for out in node.outputs:
            self.of[out.number] = group
        self.precede(group, before)

    def precede(self, group: FusionGroup, before: int) -> None:
        """The groups in `before` have to run before `group`, and before all that follow it."""
        # Sets of groups are the bits of a number: of thousands, a union or a test is one operation.
        if before & ~group.after:
            group.after |= before
            bit = 1 << group.number
            for other in self.groups:
                if other.after & bit:
                    other.after |= before

    def urgent(self) -> int:
        """The numbers, as bits, of the groups that may fail, and of all that they need: they run
        before any state is written, so that a failed call leaves all state as it was. Python code
        finds the variables as they were before the call."""
        found = 0
        for group in self.groups:
            if any(isinstance(n, Hosted) or (isinstance(n, LibraryCall) and n.checks)
                   for n in group.nodes):
                found |= group.after | 1 << group.number
        return found

    def ordered(self) -> list[FusionGroup]:
        """Kernels in an order that respects `after`: first all urgent ones; else as their first
        nodes came."""
        urgent = self.urgent()
        done, made = 0, []
        for first in (True, False):
            left = [g for g in self.groups if g.nodes and (urgent >> g.number & 1) == first]
            while left:
                rest = []
                for group in left:
                    if group.after & ~done:
                        rest.append(group)
                    else:
                        made.append(group)
                        done |= 1 << group.number
                assert len(rest) < len(left), "the kernels wait for each other"
                left = rest
        return made


def remat_stages(module: IrModule) -> dict[int, int]:
    """The latest stage among all that a value is computed of, by number; 0 where there is none."""
    stages: dict[int, int] = {}
    for node in module.nodes:
        own = node.remat_stage if isinstance(node, View) else 0
        stage = max([own, *(stages[v.number] for v in node.inputs)])
        stages |= {out.number: stage for out in node.outputs}
    return stages


def _view_axes(value: Value) -> Place | None:
    """Which axis of its root each axis of a value is; None where that is no question."""
    node = value.node
    return node.axes if isinstance(node, View) else tuple(range(len(value.shape)))


def _aligned(value: Value, whole: Place, rank: int) -> Place:
    """The place of an input, whose axes are aligned at the end with the node's."""
    offset = rank - len(value.shape)
    return tuple(None if n == 1 else whole[i + offset] for i, n in enumerate(value.shape))


def _completed(found: list[int | None], shape: Shape, domain: Shape) -> Place | None:
    """Every axis longer than 1 at an axis of the domain of that length, none used twice."""
    taken = {p for p in found if p is not None}
    if len(taken) != sum(p is not None for p in found):
        return None
    rest = [i for i, n in enumerate(shape) if n != 1 and found[i] is None]
    free = [a for a in range(len(domain)) if a not in taken]
    if rest:
        chosen = _matched([shape[i] for i in rest], [domain[a] for a in free])
        if chosen is None:
            return None
        for i, at in zip(rest, chosen):
            found[i] = free[at]
    if any(p is not None and shape[i] not in (1, domain[p]) for i, p in enumerate(found)):
        return None
    return tuple(p if shape[i] != 1 else None for i, p in enumerate(found))


def _matched(lengths: Sequence[int], free: Sequence[int]) -> list[int] | None:
    """Places for lengths among free axes, in order, the last ones first."""
    made: list[int] = []
    at = len(free) - 1
    for n in reversed(lengths):
        while at >= 0 and free[at] != n:
            at -= 1
        if at < 0:
            return None
        made.append(at)
        at -= 1
    return made[::-1]
