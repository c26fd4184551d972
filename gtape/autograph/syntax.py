"""Syntax trees: small constructors, and the names of a function's scope: those it binds and reads,
those its inner functions capture. PREFIX is the name of the operators in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
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
    # From Python 3.12 on compile() asks for it.
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


def _outside(node: ast.AST) -> list[ast.AST]:
    """The parts of a function or class that the scope around it evaluates."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    assert isinstance(node, (*FUNCTIONS, ast.Lambda))
    found: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
    if not isinstance(node, ast.Lambda):
        found += node.decorator_list
    return found


def own_nodes(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node of this scope: inner functions and classes are given, not entered."""
    stack = list(roots)[::-1]  # the last is taken first: nodes come as in the source
    while stack:
        node = stack.pop()
        yield node
        inner = isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef))
        stack += (_outside(node) if inner else list(ast.iter_child_nodes(node)))[::-1]


def parameter_names(args: ast.arguments) -> list[str]:
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [a.arg for a in [*found, *(a for a in (args.vararg, args.kwarg) if a)]]


def stored(target: ast.AST) -> set[str]:
    """The plain names that an assignment target binds."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*(stored(t) for t in target.elts)) if target.elts else set()
    return stored(target.value) if isinstance(target, ast.Starred) else set()


def bound_names(roots: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind in their own scope, by whatever means."""
    found: set[str] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            if not isinstance(node, ast.Lambda):
                found.add(node.name)
            stack += _outside(node)
            continue
        if isinstance(node, ast.comprehension):
            stack += [node.iter, *node.ifs]  # the target is the comprehension's own name
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            # `import a.b` binds a.
            found |= {a.asname or a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        stack += ast.iter_child_nodes(node)
    return found


def declared(roots: Iterable[ast.AST], kind: type) -> set[str]:
    """The names in the `global` or `nonlocal` statements of a scope."""
    nodes = (n for n in own_nodes(roots) if isinstance(n, kind))
    return {name for node in nodes for name in node.names}  # type: ignore[attr-defined]


def _body(node: ast.AST) -> list[ast.AST]:
    found = node.body  # type: ignore[attr-defined]
    return [found] if isinstance(node, ast.Lambda) else list(found)


def _of_inner(node: ast.AST) -> set[str]:
    """The free names of a function or class, without what its defaults read."""
    body = _body(node)
    read = used_names(body)
    if isinstance(node, ast.ClassDef):
        return read
    outward = declared(body, ast.Nonlocal) | declared(body, ast.Global)
    args = set(parameter_names(node.args))  # type: ignore[attr-defined]
    return (read - (bound_names(body) | args) - outward) | (
        outward & (read | bound_names(body)))


def used_names(roots: Iterable[ast.AST]) -> set[str]:
    """The names of this scope that are read, here or by functions defined here."""
    found: set[str] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            found |= _of_inner(node)
            stack += _outside(node)
            continue
        if isinstance(node, COMPREHENSIONS):
            targets = set().union(*(stored(g.target) for g in node.generators))
            inner = [n for g in node.generators[1:] for n in (g.iter, *g.ifs)]
            inner += node.generators[0].ifs
            inner += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            found |= used_names(inner) - targets
            stack.append(node.generators[0].iter)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.AugAssign):
            found |= stored(node.target)
        stack += ast.iter_child_nodes(node)
    return found


class Scope:
    """The names of one function.

    `bound`: parameters and locals. `outer`, `globals`: declared nonlocal, global. `captured`: read
    by functions defined in it, so perhaps at any later time. `rewritten`: assigned by those.
    `watched`: read where an exception may lead.
    """

    def __init__(self, params: Iterable[str], body: list[ast.stmt]) -> None:
        self.params = set(params)
        self.outer = declared(body, ast.Nonlocal)
        self.globals = declared(body, ast.Global)
        self.bound = (self.params | bound_names(body)) - self.outer - self.globals
        nodes = list(own_nodes(body))
        inner = [n for n in nodes if isinstance(n, (*FUNCTIONS, ast.Lambda, ast.ClassDef))]
        self.captured = set().union(
            *(_of_inner(n) for n in inner),
            *(used_names([n]) for n in nodes if isinstance(n, ast.GeneratorExp)))
        self.rewritten = set().union(*(_rewritten(n) for n in inner)) & (self.bound | self.outer)
        tries = [n for n in nodes if isinstance(n, TRIES)]
        self.watched = used_names([
            s for n in tries
            for s in (*n.handlers, *n.finalbody)])  # type: ignore[attr-defined]

    @property
    def weak(self) -> set[str]:
        """Names that may be read at a time that the order of the statements does not tell."""
        return self.captured | self.watched | self.outer | self.globals


def _rewritten(node: ast.AST) -> set[str]:
    """The outer names that a function, or one defined in it, declares nonlocal."""
    return {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
