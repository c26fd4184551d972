"""Groups changed where that pays: loops compute again what they read of others, and small loops of
equal text become one.

A value that is computed in the forward pass and read again in the backward pass has to lie in
memory in between; one that a cheap formula makes of values that are stored anyway is computed
twice instead. Small loops of equal text, such as an optimizer's updates of many small variables,
run on arrays laid one after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gtape.compile.compile_cost import is_cheap
from gtape.compile.ir.nodes import Elem, InputNode, Value, v_root
from gtape.compile.ir.rounding import ops_of
from gtape.compile.schedule.fuse import Fuser, FusionGroup
from gtape.opdef.scalar_graph import topological


def recompute(fuser: Fuser, worth: Callable[[Value], bool]) -> None:
    """Let the loops of a fuser compute again what they read of others, where it is `worth` it."""
    readers: dict[int, set[int]] = {}
    for group in fuser.groups:
        for number in group.reads:
            readers.setdefault(number, set()).add(group.number)
    needed = {v_root(v).number for v in fuser.module.needed()}
    last = max((o.number for n in fuser.module.nodes for o in n.outputs), default=0)
    # What later loops read instead counts for the earlier ones.
    for group in reversed(fuser.groups):
        if not group.is_loop:
            continue
        for value in _direct(group):
            maker = fuser.of.get(value.number)
            if maker is None or maker is group or not maker.is_loop or value.number in needed or (
                    not worth(value)) or not _again(fuser, readers, group, value):
                continue
            last += 1
            _copied(group, value, last)
            readers[value.number].discard(group.number)
            for x in value.node.inputs:
                readers.setdefault(x.number, set()).add(group.number)


def _direct(group: FusionGroup) -> list[Value]:
    """The values that a loop reads, each in the shape that it was made in."""
    own = {o.number for n in group.nodes for o in n.outputs}
    direct = {v.number: v for n in group.nodes for v in n.inputs if v.number not in own}
    viewed = {v_root(v).number for v in direct.values() if v_root(v) is not v}
    # For the view it is stored anyway.
    return [v for v in direct.values() if v.number not in viewed]


def _again(fuser: Fuser, readers: dict[int, set[int]], group: FusionGroup, value: Value) -> bool:
    """Whether a formula is cheap, and reads what is stored for others, or read here, anyway."""
    node = value.node
    if not isinstance(node, Elem) or not node.inputs or not is_cheap(node.body):
        return False
    place = group.place[value.number]
    maker = fuser.of[value.number]
    for x in node.inputs:
        # Of another shape, or a view, it has another place in the domain than the value.
        if (x.shape and x.shape != value.shape) or v_root(x) is not x:
            return False
        if group.place.get(x.number, place if x.shape else ()) != (place if x.shape else ()):
            return False
        # One that nobody else reads would have to be stored in place of the value.
        if x.shape and fuser.of.get(x.number) is maker and not readers.get(
                x.number, set()) - {maker.number}:
            return False
    return True


def _copied(group: FusionGroup, value: Value, number: int) -> None:
    """Compute a value in a group that reads it, as value `number`."""
    old = value.node
    assert isinstance(old, Elem)
    # The first one stays, for its other readers.
    copy = Elem(old.name, old.body, old.names, old.inputs)
    new = Value(value.shape, value.dtype, copy, number)
    copy.outputs = (new,)
    place = group.place[number] = group.place[value.number]
    for x in old.inputs:
        group.place[x.number] = place if x.shape else ()
        group.reads.add(x.number)
    group.reads.discard(value.number)
    for node in group.nodes:
        node.inputs = tuple(new if v is value else v for v in node.inputs)
    group.nodes.insert(0, copy)  # it reads nothing that this loop makes


#: Larger arrays are not laid one after another: copying them would cost more than calls do.
_JOINED = 1 << 14


class JoinedGroups(FusionGroup):
    """Several groups: `whole` computes at once what each of them did. `laid` and `cut` are the
    arrays that it reads, and those that it makes for others, each with what lies in it one after
    another."""

    __slots__ = ("cut", "laid", "whole")

    def __init__(self, members: Sequence[FusionGroup], whole: FusionGroup, laid: Parts, cut: Parts,
                 ) -> None:
        super().__init__(members[0].number, whole.domain)
        self.nodes = [n for m in members for n in m.nodes]
        self.reads = set().union(*(m.reads for m in members))
        self.whole, self.laid, self.cut = whole, laid, cut


Parts: TypeAlias = Sequence[tuple[Value, Sequence[Value]]]


def joined(groups: Sequence[FusionGroup], stored: set[int], first_number: int,
           ) -> list[FusionGroup]:
    """The groups, with such loops as one.

    Args:
        stored: the numbers of the values that others read.
        first_number: from where on numbers are free.
    """
    units = [part for group in groups for part in _components(group)]
    alike: dict[Any, list[FusionGroup]] = {}
    for unit in units:
        text = _text(unit, stored)
        if text is not None:
            alike.setdefault(text, []).append(unit)
    for candidates in alike.values():
        members = _movable(units, candidates)
        if len(members) > 1 and _pays(members, stored):
            one = _one(members, stored, first_number)
            first_number += len(one.laid) + len(one.whole.nodes)
            gone = set(map(id, members[:-1]))
            # In the last one's place, where all that they read is made.
            units = [one if u is members[-1] else u for u in units if id(u) not in gone]
    return units


def _components(group: FusionGroup) -> list[FusionGroup]:
    """A small loop of formulas in parts that have nothing but what they read in common."""
    owner: dict[int, list[Elem]] = {}
    for node in _formulas(group):
        own = owner[node.outputs[0].number] = [node]
        for value in node.inputs:
            other = owner.get(v_root(value).number, own)
            if other is not own:
                other += own
                for mate in own:
                    owner[mate.outputs[0].number] = other
                own = other
    parts = {id(nodes): nodes for nodes in owner.values()}
    return [group] if len(parts) <= 1 else [_part(group, nodes) for nodes in parts.values()]


def _part(group: FusionGroup, nodes: Sequence[Elem]) -> FusionGroup:
    part = FusionGroup(group.number, group.domain)
    order = set(map(id, nodes))
    part.nodes = [n for n in group.nodes if id(n) in order]
    part.place, part.split, part.remat_stage = group.place, group.split, group.remat_stage
    part.reads = {v_root(v).number for n in nodes for v in n.inputs}
    return part


def _text(group: FusionGroup, stored: set[int]) -> Any:
    """What a small loop computes, apart from which arrays; None where arrays of other shapes take
    part."""
    nodes = _formulas(group)
    shape = nodes[0].outputs[0].shape if nodes else ()
    if math.prod(shape) > _JOINED or not all(
            n.outputs[0].shape == shape and {v.shape for v in n.inputs} >= {shape} for n in nodes):
        return None
    codes: dict[int, tuple[object, ...]] = {}
    lines: list[tuple[object, ...]] = []
    for node in nodes:
        out = node.outputs[0]
        for value in node.inputs:
            if value.number in codes:
                continue
            if value.shape not in ((), shape):
                return None
            # The joined loop reads one number for all members: it must be the same one.
            codes[value.number] = ("array", len(codes), value.dtype) if value.shape else (
                "number", value.number)
        codes[out.number] = ("inside", len(lines), out.dtype)
        inputs = tuple(codes[v.number] for v in node.inputs)
        lines.append((ops_of(node, inputs), out.dtype, out.number in stored))
    return tuple(lines) if shape else None


def _formulas(group: FusionGroup) -> list[Elem]:
    """The nodes of a loop without reductions; none of other groups."""
    nodes = [n for n in group.nodes if isinstance(n, Elem)]
    return nodes if len(nodes) == len(group.nodes) else []


def _movable(units: Sequence[FusionGroup], candidates: Sequence[FusionGroup]) -> list[FusionGroup]:
    """Those that can run where the last one runs: nobody reads before what they make."""
    place = {id(u): i for i, u in enumerate(units)}
    readers: dict[int, list[int]] = {}
    for i, unit in enumerate(units):
        for number in unit.reads:
            readers.setdefault(number, []).append(i)
    last = place[id(candidates[-1])]
    return [group for group in candidates if not any(
        place[id(group)] < i <= last for node in group.nodes
        for i in readers.get(node.outputs[0].number, ()))]


def _pays(members: Sequence[FusionGroup], stored: set[int]) -> bool:
    """Whether laying arrays one after another costs less than the calls that it saves.

    In calls of a ufunc on a small array; a part that is copied or cut costs about half of one.
    """
    first, count = members[0], len(members)
    calls = sum(sum(part.op is not None for part in topological([n.body]))
                for n in _formulas(first))
    arrays, kept = len(_arrays(first)), len(_kept(first, stored))
    return calls * count > calls * 1.5 + arrays * (1.5 + count / 2) + kept * count * 0.7


def _arrays(group: FusionGroup) -> list[Value]:
    """The arrays that a loop reads, each once, in the order of its nodes."""
    results = {o.number for n in group.nodes for o in n.outputs}
    return list({v.number: v for n in group.nodes for v in n.inputs
                 if v.shape and v.number not in results}.values())


def _kept(group: FusionGroup, stored: set[int]) -> list[int]:
    """The places of the nodes whose values others read."""
    return [i for i, n in enumerate(group.nodes) if n.outputs[0].number in stored]


def _one(members: Sequence[FusionGroup], stored: set[int], number: int) -> JoinedGroups:
    first, shape = members[0], (sum(m.nodes[0].outputs[0].size for m in members),)
    group = FusionGroup(first.number, shape)
    group.remat_stage = first.remat_stage
    whole: dict[int, Value] = {}
    laid = []
    for parts in zip(*map(_arrays, members)):
        source = InputNode("laid", parts)
        whole[parts[0].number] = Value(shape, parts[0].dtype, source, number + len(whole))
        laid.append((whole[parts[0].number], parts))
    for old in _formulas(first):
        node = Elem(old.name, old.body, old.names, [whole.get(v.number, v) for v in old.inputs])
        out = old.outputs[0]
        node.outputs = (Value(shape, out.dtype, node, number + len(whole)),)
        whole[out.number] = node.outputs[0]
        group.nodes.append(node)
    group.place = {v.number: (0,) for v in whole.values()} | {
        v.number: () for n in group.nodes for v in n.inputs if not v.shape}
    cut = [(group.nodes[i].outputs[0], tuple(m.nodes[i].outputs[0] for m in members))
           for i in _kept(first, stored)]
    return JoinedGroups(members, group, laid, cut)
