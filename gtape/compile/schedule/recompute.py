"""What is computed again where it is read, so that it need not be stored.

A value that is computed in the forward pass and read again in the backward pass has to lie in
memory in between. One that a cheap formula makes of values that are stored anyway is computed
twice instead.
"""

from __future__ import annotations

from collections.abc import Callable

from gtape.compile.compile_cost import is_cheap
from gtape.compile.ir.nodes import Elem, Value, v_root
from gtape.compile.schedule.fuse import Fuser, FusionGroup


def recompute(fuser: Fuser, worth: Callable[[Value], bool]) -> None:
    """Let the loops of a fuser compute again what they read of others, where it is `worth` it."""
    readers: dict[int, set[int]] = {}
    for group in fuser.groups:
        for number in group.reads:
            readers.setdefault(number, set()).add(group.number)
    needed = {v_root(v).number for v in fuser.module.needed()}
    last = max((o.number for n in fuser.module.nodes for o in n.outputs), default=0)
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
    return [v for v in direct.values() if v.number not in viewed]


def _again(fuser: Fuser, readers: dict[int, set[int]], group: FusionGroup, value: Value) -> bool:
    """Whether a formula is cheap, and reads what is stored for others, or read here, anyway."""
    node = value.node
    if not isinstance(node, Elem) or not node.inputs or not is_cheap(node.body):
        return False
    place = group.place[value.number]
    maker = fuser.of[value.number]
    for x in node.inputs:
        if (x.shape and x.shape != value.shape) or v_root(x) is not x:
            return False
        if group.place.get(x.number, place if x.shape else ()) != (place if x.shape else ()):
            return False
        if x.shape and fuser.of.get(x.number) is maker and not readers.get(
                x.number, set()) - {maker.number}:
            return False
    return True


def _copied(group: FusionGroup, value: Value, number: int) -> None:
    """Compute a value in a group that reads it, as value `number`."""
    old = value.node
    assert isinstance(old, Elem)
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
    group.nodes.insert(0, copy)
