"""Expressions: `and`, `or`, `not`, `a if c else b`, chains of comparisons, and calls."""

from __future__ import annotations

import ast
from typing import TypeVar

from gtape.autograph.nodes import (
    call,
    constant,
    is_operator,
    lazy,
    load,
    located,
    operator,
    tuple_of,
)
from gtape.autograph.scopes import own_nodes

_N = TypeVar("_N", bound=ast.AST)
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
            ast.NotEq: "ne", ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_",
            ast.NotIn: "not_in"}
_ALWAYS_BOOL = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_PREDICATES = {"isinstance", "issubclass", "callable", "hasattr"}
_SAFE = (ast.Name, ast.Constant, ast.Attribute, ast.Compare, ast.UnaryOp, ast.BinOp, ast.cmpop,
         ast.unaryop, ast.Add, ast.Sub, ast.Mult, ast.expr_context)


def static(test: ast.expr) -> bool:
    """Whether a condition is a Python value, whatever the variables hold."""
    if isinstance(test, ast.Compare):
        return all(isinstance(op, _ALWAYS_BOOL) for op in test.ops)
    if isinstance(test, ast.BoolOp):
        return all(static(v) for v in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return static(test.operand)
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id in _PREDICATES
    return isinstance(test, ast.Constant)


def _deferrable(node: ast.AST) -> bool:
    """Whether an expression means the same inside a lambda: := would bind another name."""
    return not any(isinstance(n, ast.NamedExpr) for n in own_nodes([node]))


def _safe(node: ast.AST) -> bool:
    """Whether an expression may be evaluated needlessly: sums and comparisons of values."""
    return all(isinstance(n, _SAFE) for n in ast.walk(node))


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of a scope. `first` is its first parameter, for `super()`."""

    def __init__(self, first: str | None) -> None:
        self._first = first

    def convert(self, node: _N) -> _N:
        return self.visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        deferrable = _deferrable(node.body) and _deferrable(node.orelse)
        skipped = static(node.test) or not deferrable
        self.generic_visit(node)
        if skipped:
            return node
        line = constant(node.lineno)
        return located(call("choose", node.test, lazy(node.body), lazy(node.orelse), line), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        skipped = static(node) or not all(_deferrable(v) for v in node.values[1:])
        safe = all(_safe(v) for v in node.values[1:])
        self.generic_visit(node)
        if skipped:
            return node
        name = ("and_" if isinstance(node.op, ast.And) else "or_")
        first, *others = node.values
        return located(call(name, constant(safe), first, *(lazy(v) for v in others)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        skipped = not isinstance(node.op, ast.Not) or static(node)
        self.generic_visit(node)
        return node if skipped else located(call("not_", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        skipped = len(node.ops) == 1 or static(node) or not all(
            _deferrable(v) for v in node.comparators)
        safe = all(_safe(v) for v in node.comparators)
        self.generic_visit(node)
        if skipped:
            return node
        pairs = [tuple_of([operator(_COMPARE[type(op)]), lazy(value)])
                 for op, value in zip(node.ops, node.comparators)]
        return located(call("chain", constant(safe), node.left, *pairs), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args and not node.keywords and self._first is not None:
                around = (load("__class__"), load(self._first))
                node.args = [located(name, node) for name in around]
            return node
        self.generic_visit(node)
        if not is_operator(node.func):
            node.func = located(call("callee", node.func), node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        first, self._first = self._first, None
        node.body = self.visit(node.body)
        self._first = first
        return node

    def _unchanged(self, node: _N) -> _N:
        return node

    visit_ClassDef = _unchanged
    visit_FunctionDef = _unchanged
    visit_AsyncFunctionDef = _unchanged


