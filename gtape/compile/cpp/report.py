"""What a compiled program is made of, as text: its nodes, its plan, its traffic, its C++."""

from __future__ import annotations

from gtape.compile.ir.nodes import IrNode, LibraryCall, Product, Value
from gtape.compile.schedule.plan import MemoryPlan, nbytes


def floor_bytes(plan: MemoryPlan) -> int:
    """The bytes that have to move whatever the program does in between: arguments, states and
    constants read once, results and states written once."""
    read = {v.number: v for n in plan.module.nodes for v in n.outputs
            if plan.places.get(v.number, ("", 0))[0] in (
                "argument", "capture", "state", "constant") and not n.inputs}
    written = {v.number: v for v in plan.module.needed()}
    return sum(map(nbytes, read.values())) + sum(map(nbytes, written.values()))


def traffic_bytes(plan: MemoryPlan) -> int:
    """The bytes that the steps read and write, each array once a step."""
    total = 0
    by_number = {v.number: v for n in plan.module.nodes for v in n.outputs}
    for group in plan.groups:
        own = {o.number for n in group.nodes for o in n.outputs}
        total += sum(nbytes(by_number[n]) for n in group.reads if n not in own)
        total += sum(nbytes(by_number[n]) for n in own if n in plan.stored)
    return total


def flops(plan: MemoryPlan) -> int:
    """Multiplications and additions of the matrix products."""
    return sum(2 * n.outputs[0].size * n.inputs[0].shape[-1]
               for n in plan.module.nodes if isinstance(n, Product))


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 10240 or unit == "MiB":
            return f"{count:,} {unit}"
        count //= 1024
    return ""


def _step(plan: MemoryPlan, position: int) -> str:
    group = plan.groups[position]
    names = [_label(node) for node in group.nodes]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    stored = [f"%{o.number} at {_place(plan, o)}" for n in group.nodes for o in n.outputs
              if o.number in plan.stored]
    domain = "" if group.domain is None else f" over {list(group.domain)}"
    return f"{position:4d}  {shown}{domain} -> {'; '.join(stored) or 'nothing kept'}"


def _label(node: IrNode) -> str:
    if isinstance(node, Product):
        a, b = node.inputs
        return f"product {list(a.shape)} x {list(b.shape)}"
    return node.name if isinstance(node, LibraryCall) else node.label


def _place(plan: MemoryPlan, value: Value) -> str:
    role, at = plan.places[value.number]
    kept = " in place" if value.number in plan.in_place else ""
    return f"{role} {at}{kept}"


def described(plan: MemoryPlan, arena: int, text: str) -> str:
    """The nodes, the steps with the places of what they make, the bytes, and the source."""
    lines = ["nodes", *("  " + line for line in str(plan.module).split("\n")), "", "plan"]
    lines += ["  " + _step(plan, i) for i in range(len(plan.groups))]
    lines += ["", f"arena {_size(arena)}, traffic {_size(traffic_bytes(plan))}, of which "
                  f"{_size(floor_bytes(plan))} cannot be avoided; matrix products "
                  f"{flops(plan):,} operations", "", "source", *text.split("\n")]
    return "\n".join(lines)
