"""Writes docs/ops.md from the declarations: `python docs/generate_ops.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from gtape.core.device import CPU
from gtape.core.dtypes import complex128, float64
from gtape.core.op import Op, declared
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.numpy_code import number_text
from gtape.opdef.primitive import Primitive
from gtape.opdef.scalar_graph import Expr
from gtape.ops import every_module

PATH = Path(__file__).with_name("ops.md")
HEAD = """# The ops

Written by `docs/generate_ops.py` from the declarations. An op is what a tape records; a name here
is that of the declaration, which is the public function's name or close to it. *Gradient* is what
each input gets from the cotangent `g` of the result `y`. *Kept* is what the tape holds for it: a
name is a value, a name in parentheses only its shape and dtype. Gradients are made of the same ops,
so they can be differentiated again; where it says *once* they cannot. *Derived* is a formula too
long for a line.
"""
_LONG = 110


def home(op: Op, sources: dict[str, str]) -> str:
    """The module that declares an op: a scalar op's is the one with its signature."""
    function = getattr(op, "_fn", None)
    if function is not None:
        return str(function.__module__)
    signature = f'"{op.name}({", ".join(op.params)})"'
    return next((name for name, source in sources.items() if signature in source), "")


def by_module() -> Iterator[tuple[ModuleType, list[Op]]]:
    """Each module with the ops that it declares, in order."""
    found = every_module()
    sources = {m.__name__: Path(str(m.__file__)).read_text(encoding="utf-8") for m in found}
    homes = {id(op): home(op, sources) for op in declared()}
    for module in found:
        ops = [op for op in declared() if homes[id(op)] == module.__name__]
        if ops:
            yield module, ops


def spelled(expr: Expr) -> str:
    """An expression as text."""
    if expr.op is None:
        return str(expr.value) if expr.is_input else number_text(expr.value)
    args = [spelled(a) for a in expr.args]
    if expr.op.infix is not None:
        return "(" + expr.op.infix.format(*args) + ")"
    return f"{expr.op.name}({', '.join(args)})"


def _bare(text: str) -> str:
    """`text` without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and i < len(text) - 1:
            return text
    return text[1:-1]


def _elementwise(op: Elementwise) -> tuple[str, str]:
    """(gradient, kept) of an elementwise op."""
    if op.nondifferentiable:
        return "none flows", ""
    if not op.has_gradient:
        return "none registered", ""
    complex_ = op.types in ("complex", "magnitude")
    array_type = CPU.typed(complex128 if complex_ else float64)
    parts = []
    for name, part in zip(op.params, op.input_cotangents(range(len(op.params)), complex_)):
        if part is not None:
            text = _bare(spelled(part))
            parts.append(f"{name}: " + (f"`{text}`" if len(text) < _LONG else "derived"))
    program = op.vjp_program(op.operand_types(array_type), (1 << len(op.params)) - 1)
    names = [n for n, read in zip((*op.params, "y"), program.reads if program else ()) if read]
    return "; ".join(parts) or "zero or none", ", ".join(names) or "nothing"


def _ruled(op: Primitive | Composite) -> tuple[str, str]:
    """(gradient, kept) of an op with rules by input."""
    if op.nondifferentiable:
        return "none flows", ""
    rules = {p: op.vjp_rules.rule_of(i) for i, p in enumerate(op.params)}
    if not op.vjp_rules.any:
        return ("that of its definition", "what its definition keeps") if isinstance(
            op, Composite) else ("none registered", "")
    kept: dict[str, None] = {}
    for rule in dict.fromkeys(r for r in rules.values() if r is not None):
        for name, spec_only in zip(rule.sources, rule.spec_only):
            kept[f"({name})" if spec_only else name] = None
    text = "for " + ", ".join(p for p, rule in rules.items() if rule is not None)
    if op.linear:
        text += f"; linear in {', '.join(op.linear)}"
    if any(case.orders < 2 for case in op.cases):
        text += "; once"
    whole = [n for n in kept if f"({n})" in kept]
    return text, ", ".join(n for n in kept if n.strip("()") not in whole or n in whole) or "nothing"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def row(op: Op) -> str:
    """The op's row of the table."""
    rules = _elementwise if isinstance(op, Elementwise) else _ruled
    gradient, kept = rules(op)  # type: ignore[operator]
    name = op.name.rstrip("_")
    formula = (op.__doc__ or "").strip().split("\n\n")[0]
    inputs = ", ".join(op.params)
    attrs = op.attr_names
    inputs += "; " + ", ".join(attrs) if attrs else ""
    kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(op).__name__).lower()
    cells = (f"`{name}`", kind, formula, inputs, gradient, kept)
    return "| " + " | ".join(_cell(c) for c in cells) + " |"


def text() -> str:
    """The whole page."""
    lines = [HEAD]
    for module, ops in by_module():
        title = module.__name__.rpartition(".")[2].replace("_", " ")
        about = (module.__doc__ or "").strip().split("\n")[0]
        lines += [f"## {title[0].upper()}{title[1:]}", "", about, "",
                  "| op | kind | value | inputs; attributes | gradient | kept |",
                  "|---|---|---|---|---|---|", *map(row, ops), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
