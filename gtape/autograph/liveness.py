"""Liveness: which names are read later, for every choice and loop of a function.

The backward data-flow analysis of compilers (Aho, Lam, Sethi, Ullman, Compilers, 2nd ed., section
9.2.5), on statements whose jumps `jumps` has lowered. Behind `flag = True` control goes, past
statements that the flag guards, to where the jump led: only what is read there is live. Paths by
which an exception leaves a `try` are not followed: `Scope.weak` has the names that those may read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from gtape.autograph.jumps import RETURNED, guard_flags, is_jump, kept, never_false
from gtape.autograph.syntax import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    PREFIX,
    TRIES,
    bound_names,
    stored,
    used_names,
)

#: By flag: the names read from where its jump leads.
_Targets = Mapping[str, set[str]]


def annotate(body: list[ast.stmt]) -> None:
    """Set on every `if` `then_live`, `else_live`: names read behind it on the paths by its two
    branches; on every loop `live`: names read from its head on, and `late`: names read behind it,
    but not before a turn that leaves it has set them.
    """
    _before(body, set(), {RETURNED: set()})


def _before(stmts: Iterable[ast.stmt], live: set[str], targets: _Targets) -> set[str]:
    """The names read from the start of the statements on, where `live` are read behind them."""
    for node in reversed(list(stmts)):
        live = _statement(node, live, targets)
    return live


def _jumping(flags: Iterable[str], live: set[str], targets: _Targets) -> set[str]:
    """The names read behind a statement on the path of jumps that have set the flags."""
    found = _flags(live)
    for flag in flags:
        found |= targets.get(flag, live)
    return found


def _at_end(stmts: list[ast.stmt], live: set[str], targets: _Targets) -> set[str]:
    """The names read behind a block that control leaves at its end."""
    last = stmts[-1] if stmts else None
    if isinstance(last, ast.Assign) and is_jump(last):
        return _jumping(stored(last.targets[0]), live, targets)
    if isinstance(last, ast.With) and not kept(last):
        return _at_end(last.body, live, targets)
    if isinstance(last, ast.If) and not kept(last):
        skipped = _skipping(last, live, targets)
        return _at_end(last.body, live, targets) | _at_end(last.orelse, skipped, targets)
    return live


def _skipping(node: ast.If, live: set[str], targets: _Targets) -> set[str]:
    """The names read behind an `if` whose condition fails."""
    flags = guard_flags(node)
    return _jumping(flags, live, targets) if flags else live


def _statement(node: ast.stmt, live: set[str], targets: _Targets) -> set[str]:
    if kept(node):
        return live | used_names([node])
    if isinstance(node, ast.If):
        return _if(node, live, targets)
    if isinstance(node, LOOPS):
        return _loop(node, live, targets)
    if isinstance(node, TRIES):
        return _try(node, live, targets)
    if isinstance(node, ast.With):
        inside = _before(node.body, live, targets)
        for item in reversed(node.items):
            if item.optional_vars is not None:
                inside = (inside - stored(item.optional_vars)) | used_names([item.optional_vars])
            inside = _through(item.context_expr, inside)
        return inside
    if isinstance(node, ast.Match):
        found = set(live)
        for case in node.cases:
            inside = _before(case.body, live, targets)
            inside |= used_names([case.guard] if case.guard else [])
            found |= (inside - bound_names([case.pattern])) | used_names([case.pattern])
        return _through(node.subject, found)
    if isinstance(node, (ast.Return, ast.Raise)):
        return used_names([node])
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return (live - {node.name}) | used_names([node])
    if is_jump(node):
        live = _at_end([node], live, targets)
    return (live - _killed(node)) | _read_first(node)


def _if(node: ast.If, live: set[str], targets: _Targets) -> set[str]:
    skipped = _skipping(node, live, targets)
    node.then_live = _at_end(node.body, live, targets)  # type: ignore[attr-defined]
    node.else_live = _at_end(node.orelse, skipped, targets)  # type: ignore[attr-defined]
    inside = _before(node.body, live, targets) | _before(node.orelse, skipped, targets)
    return _through(node.test, inside)


def _loop(node: ast.For | ast.While, live: set[str], targets: _Targets) -> set[str]:
    stops = set(node.stops)  # type: ignore[union-attr]
    head = stops | _flags(live) if never_false(node) else live | stops
    # To a fixed point: what one turn reads is live at the end of the turn before.
    while True:
        inner = {**targets, **dict.fromkeys(stops - {RETURNED}, live),
                 node.again: head}  # type: ignore[union-attr]
        inside = _before(node.body, head, inner)
        if isinstance(node, ast.While):
            found = head | _through(node.test, inside)
        else:
            found = head | (inside - stored(node.target)) | used_names([node.target])
        if found == head:
            break
        head = found
    node.live = head  # type: ignore[union-attr]
    node.late = live - head  # type: ignore[union-attr]
    return head if isinstance(node, ast.While) else _through(node.iter, head)


def _flags(live: set[str]) -> set[str]:
    return {name for name in live if name.startswith(PREFIX)}


def _try(node: ast.stmt, live: set[str], targets: _Targets) -> set[str]:
    last = _before(node.finalbody, live, targets)  # type: ignore[attr-defined]
    found = _before(node.orelse, last, targets)  # type: ignore[attr-defined]
    found = _before(node.body, found, targets)  # type: ignore[attr-defined]
    for handler in node.handlers:  # type: ignore[attr-defined]
        inside = _before(handler.body, last, targets) - ({handler.name} if handler.name else set())
        found |= inside | used_names([handler.type] if handler.type else [])
    return found


def _through(test: ast.expr, live: set[str]) -> set[str]:
    return (live - _certain_walrus(test)) | _read_first(test)


def _certain_walrus(node: ast.AST) -> set[str]:
    """The names that an expression binds by := whenever it is evaluated."""
    if isinstance(node, ast.NamedExpr):
        return stored(node.target) | _certain_walrus(node.value)
    if isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
        return set()
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.BoolOp):
        parts = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.Compare):
        parts = [node.left, node.comparators[0]]
    return set().union(*(_certain_walrus(part) for part in parts))


def _read_first(node: ast.AST) -> set[str]:
    """The names that are read, less those that := binds before every place that reads them."""
    found = used_names([node])
    for name in _certain_walrus(node) & found:
        ends = [(n.end_lineno or 0, n.end_col_offset or 0) for n in ast.walk(node)
                if isinstance(n, ast.NamedExpr) and n.target.id == name]
        reads = [(n.lineno, n.col_offset) for n in ast.walk(node)
                 if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
        if len(ends) == 1 and all(at >= ends[0] for at in reads):
            found = found - {name}
    return found


def _killed(node: ast.stmt) -> set[str]:
    """The names that a simple statement binds for certain."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return bound_names([node])
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    return set().union(_certain_walrus(node), *(stored(t) for t in targets))
