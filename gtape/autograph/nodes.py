"""Small constructors of syntax trees. PREFIX is the name of the operators in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

PREFIX = "ag__"

_N = TypeVar("_N", bound=ast.AST)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TRIES: tuple[type, ...] = (ast.Try, ast.TryStar)


def located(node: _N, like: ast.AST) -> _N:
    """`node` at the start of `like`, with all in it that has no position of its own.

    On one line, because the compiler counts a call of an attribute to the line where that ends.
    """
    line, column = like.lineno, like.col_offset  # type: ignore[attr-defined]
    stack: list[ast.AST] = [node]
    while stack:
        found = stack.pop()
        if "lineno" in found._attributes:
            if hasattr(found, "lineno"):
                continue
            found.lineno = found.end_lineno = line  # type: ignore[attr-defined]
            found.col_offset = column  # type: ignore[attr-defined]
            found.end_col_offset = column  # type: ignore[attr-defined]
        stack += ast.iter_child_nodes(found)
    return node


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def operator(name: str) -> ast.Attribute:
    """ag__.name"""
    return ast.Attribute(load(PREFIX), name, ast.Load())


def call(name: str, *args: ast.expr) -> ast.Call:
    """ag__.name(*args)"""
    return ast.Call(operator(name), list(args), [])


def is_operator(node: ast.AST) -> bool:
    """Whether `node` is ag__.something."""
    return (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id == PREFIX)


def constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def tuple_of(items: Iterable[ast.expr]) -> ast.Tuple:
    return ast.Tuple(list(items), ast.Load())


def parameters(names: Iterable[str] = ()) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def lazy(value: ast.expr) -> ast.Lambda:
    return located(ast.Lambda(parameters(), value), value)


def function(name: str, params: Iterable[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, parameters(params), list(body), [], None, None)
    made.type_params = []  # type: ignore[attr-defined]
    return made


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def returning(value: ast.expr) -> ast.Return:
    return ast.Return(value)


def blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The statement lists of a compound statement, in their order in the source."""
    if isinstance(node, ast.Match):
        return [case.body for case in node.cases]
    if isinstance(node, TRIES):
        handlers = [h.body for h in node.handlers]  # type: ignore[attr-defined]
        return [node.body, *handlers, node.orelse, node.finalbody]  # type: ignore[attr-defined]
    if isinstance(node, (ast.If, *LOOPS)):
        return [node.body, node.orelse]
    if isinstance(node, ast.With):
        return [node.body]
    return []
