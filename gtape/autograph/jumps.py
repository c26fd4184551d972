"""Jumps become flags: return, break and continue inside choices and loops.

Two rules. A choice of which one branch always jumps away takes the statements behind it into its
other branch. Where both branches may go on, a jump sets a flag, and the statements behind run
under `if ag__.none_of(flags)`. A loop gets `stops`, the flags that end it, and `again`, the flag
that ends a turn.

`tail` lowers a block that ends its function, where `return` stays; `flagged` any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gtape.autograph.syntax import (
    LOOPS,
    PREFIX,
    TRIES,
    assign,
    blocks,
    call,
    constant,
    is_operator,
    load,
    located,
    returning,
)

RETURNED = f"{PREFIX}returned"
RESULT = f"{PREFIX}result"


def exits(stmts: Iterable[ast.stmt]) -> set[str]:
    """The kinds of jumps that leave the statements."""
    found: set[str] = set()
    for node in stmts:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            found.add(type(node).__name__.lower())
        elif isinstance(node, LOOPS):
            found |= (exits(node.body) - {"break", "continue"}) | exits(node.orelse)
        else:
            for block in blocks(node):
                found |= exits(block)
    return found


def leaving(node: ast.stmt) -> set[str]:
    """The kinds of jumps that leave a statement, but for those in the `else` of a loop, which is
    lowered as a statement behind it."""
    return exits(node.body) - {"break", "continue"} if isinstance(node, LOOPS) else exits([node])


def never_false(node: ast.stmt) -> bool:
    """`while True`"""
    return (isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
            and bool(node.test.value))


def _endless(node: ast.stmt) -> bool:
    return never_false(node) and "break" not in exits(node.body)  # type: ignore[attr-defined]


def is_jump(node: ast.stmt) -> bool:
    """Whether a lowered statement is flag = True."""
    return (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id.startswith(PREFIX) and isinstance(node.value, ast.Constant)
            and node.value.value is True and node.targets[0].id != RESULT)


def guard_flags(node: ast.If) -> list[str]:
    """The flags of `if ag__.none_of(flags)`, and none for any other `if`."""
    test = node.test
    if not (isinstance(test, ast.Call) and is_operator(test.func)):
        return []
    return [name.id for name in test.args if isinstance(name, ast.Name)]


def falls(stmts: Iterable[ast.stmt]) -> bool:
    """Whether control may reach the end of the block."""
    return all(_falls(node) for node in stmts)


def _falls(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return False
    if isinstance(node, ast.If):
        return falls(node.body) or falls(node.orelse)
    if isinstance(node, TRIES):
        whole = [*node.body, *node.orelse]  # type: ignore[attr-defined]
        handlers = node.handlers  # type: ignore[attr-defined]
        return falls(whole) or any(falls(h.body) for h in handlers)
    return not _endless(node)


def kept(node: ast.stmt) -> bool:
    """Whether a statement stays Python: a jump out of `finally` also drops an exception."""
    if isinstance(node, TRIES) and exits(node.finalbody):  # type: ignore[attr-defined]
        return True
    return any(kept(n) and exits([n]) for block in blocks(node) for n in block)


class Jumps:
    """Lowers the jumps of one function."""

    def __init__(self) -> None:
        self._loops = 0

    # ------------------------------------------------------------------ where return stays

    def tail(self, stmts: list[ast.stmt], like: ast.AST) -> list[ast.stmt]:
        """A block whose end is the end of the function."""
        made: list[ast.stmt] = []
        rest = list(stmts)
        while rest:
            node = like = rest.pop(0)
            if isinstance(node, (ast.Return, ast.Raise)):
                return [*made, node]
            if kept(node):
                made.append(node)
            elif "return" not in leaving(node):
                lowered, more = self._one(node, "")
                made += lowered
                rest = more + rest
            elif isinstance(node, ast.If) and not (falls(node.body) and falls(node.orelse)):
                node.body = self.tail(node.body + (rest if falls(node.body) else []), node)
                node.orelse = self.tail(node.orelse + (rest if falls(node.orelse) else []), node)
                return [*made, node]
            elif self._tail_inside(node, bool(rest)):
                made.append(node)
            else:
                return made + self._behind(node, rest)
        return [*made, located(returning(constant(None)), like)]

    def _tail_inside(self, node: ast.stmt, followed: bool) -> bool:
        """Lower a `with`, `try` or `match` whose own returns can stay; false where they cannot."""
        if isinstance(node, ast.With) and not (followed and falls(node.body)):
            node.body = self.tail(node.body, node)
            return True
        if isinstance(node, ast.Match) and not followed:
            for case in node.cases:
                case.body = self.tail(case.body, node)
            return True
        if isinstance(node, TRIES) and not node.orelse and not (  # type: ignore[attr-defined]
                followed and _falls(node)):
            node.body = self.tail(node.body, node)  # type: ignore[attr-defined]
            for handler in node.handlers:  # type: ignore[attr-defined]
                handler.body = self.tail(handler.body, handler)
            # It runs on the way out of every branch, so that a return in it would take their place.
            node.finalbody = self.flagged(node.finalbody, "")  # type: ignore[attr-defined]
            return True
        return False

    def _behind(self, node: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A statement that may or may not return, and the rest of the function behind it."""
        going_on = _falls(node)
        lowered, more = self._one(node, "")
        start = located(assign(RETURNED, constant(False)), node)
        result = located(returning(load(RESULT)), node)
        if not going_on:
            return [start, *lowered, result]
        chosen = located(ast.If(load(RETURNED), [result], self.tail(more + rest, node)), node)
        return [start, *lowered, chosen]

    # ------------------------------------------------------------------ where it sets flags

    def flagged(self, stmts: list[ast.stmt], loop: str) -> list[ast.stmt]:
        """A block inside a function; `loop` ends the names of the flags of the loop around it."""
        made: list[ast.stmt] = []
        rest = list(stmts)
        while rest:
            node = rest.pop(0)
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return made + self._jump(node, loop)
            if isinstance(node, ast.Raise):
                return [*made, node]
            if kept(node):
                made.append(node)
                continue
            found = leaving(node)
            if found and isinstance(node, ast.If) and not (
                    falls(node.body) and falls(node.orelse)):
                node.body = node.body + (rest if falls(node.body) else [])
                node.orelse = node.orelse + (rest if falls(node.orelse) else [])
                return made + self._one(node, loop)[0]
            going_on = _falls(node)
            lowered, more = self._one(node, loop)
            made += lowered
            rest = more + rest
            if found and rest:
                guarded = self.flagged(rest, loop) if going_on else []
                return made + ([_unless(found, loop, guarded, node)] if guarded else [])
        return made

    def _jump(self, node: ast.stmt, loop: str) -> list[ast.stmt]:
        if isinstance(node, ast.Return):
            value = node.value or constant(None)
            return [located(assign(RESULT, value), node),
                    located(assign(RETURNED, constant(True)), node)]
        return [located(assign(_flag(type(node).__name__.lower(), loop), constant(True)), node)]

    def _one(self, node: ast.stmt, loop: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """One statement with its inner blocks lowered, and statements still to lower behind it."""
        if isinstance(node, LOOPS):
            return self._loop(node)
        if isinstance(node, TRIES):
            before = exits(node.body)  # type: ignore[attr-defined]
            orelse = node.orelse  # type: ignore[attr-defined]
            if before and orelse:
                orelse = [_unless(before, loop, orelse, node)]
            node.body = self._block(node.body, loop, node)  # type: ignore[attr-defined]
            for handler in node.handlers:  # type: ignore[attr-defined]
                handler.body = self._block(handler.body, loop, handler)
            node.orelse = self.flagged(orelse, loop)  # type: ignore[attr-defined]
            node.finalbody = self.flagged(node.finalbody, loop)  # type: ignore[attr-defined]
        elif isinstance(node, ast.If):
            node.body = self._block(node.body, loop, node)
            node.orelse = self.flagged(node.orelse, loop)
        elif isinstance(node, ast.With):
            node.body = self._block(node.body, loop, node)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                case.body = self._block(case.body, loop, node)
        return [node], []

    def _block(self, stmts: list[ast.stmt], loop: str, like: ast.AST) -> list[ast.stmt]:
        return self.flagged(stmts, loop) or [located(ast.Pass(), like)]

    def _loop(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
        self._loops += 1
        own = str(self._loops)
        found = exits(node.body)
        stops = [_flag(kind, own) for kind in ("break", "return") if kind in found]
        before: list[ast.stmt] = []
        if "break" in found:
            before = [located(assign(_flag("break", own), constant(False)), node)]
        again: list[ast.stmt] = []
        if "continue" in found:
            again = [located(assign(_flag("continue", own), constant(False)), node)]
        behind = node.orelse
        if behind and stops:
            behind = [_unless(found - {"continue"}, own, behind, node)]
        node.body = again + self._block(node.body, own, node)
        node.orelse = []
        node.stops = stops  # type: ignore[union-attr]
        node.again = _flag("continue", own)  # type: ignore[union-attr]
        return [*before, node], behind


def _flag(kind: str, loop: str) -> str:
    return RETURNED if kind == "return" else f"{PREFIX}{kind}{loop}"


def _unless(kinds: set[str], loop: str, body: list[ast.stmt], like: ast.AST) -> ast.If:
    flags = [load(_flag(kind, loop)) for kind in sorted(kinds)]
    return located(ast.If(call("none_of", *flags), body, []), like)
