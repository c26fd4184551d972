"""What a block changes besides names: attributes and items of objects from outside it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gtape.autograph.nodes import constant, lazy, load, located, tuple_of
from gtape.autograph.scopes import own_nodes


def _dotted(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _base(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _loaded(node: ast.AST) -> ast.expr:
    """A dotted name once more, to be read."""
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_loaded(node.value), node.attr, ast.Load())
    assert isinstance(node, ast.Name)
    return load(node.id)


def places(stmts: Iterable[ast.stmt], local: set[str]) -> list[ast.expr]:
    """(kind, object, attribute, text) of every place that the statements assign to or delete.

    Objects that they make themselves, under the names in `local`, are theirs to change. Kinds:
    'attribute', 'items', and 'unknown' for a place that cannot be named before the block runs.
    """
    found: dict[str, ast.expr] = {}
    for node in own_nodes(stmts):
        stored = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
            node.ctx, ast.Load)
        if not stored or _base(node) in local:
            continue
        assert isinstance(node, (ast.Attribute, ast.Subscript))
        kind, name, text = "unknown", "", ast.unparse(node)
        if _dotted(node.value):
            kind = "attribute" if isinstance(node, ast.Attribute) else "items"
            name = node.attr if isinstance(node, ast.Attribute) else ""
            text = text if name else ast.unparse(node.value)
        holder = lazy(located(_loaded(node.value), node)) if kind != "unknown" else constant(None)
        found[text] = tuple_of([constant(kind), holder, constant(name), constant(text)])
    return list(found.values())
