"""Expressions and statements of a function, rewritten to calls of operators.

The blocks of choices and loops become functions, which declare the names that they bind `nonlocal`,
so that blocks, the function around them and everything that captures those names see the same
variables, as before the conversion.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from gtape.autograph.jumps import RESULT, Jumps, exits, kept
from gtape.autograph.liveness import annotate
from gtape.autograph.syntax import (
    PREFIX,
    TRIES,
    Scope,
    blocks,
    bound_names,
    call,
    constant,
    function,
    is_operator,
    lazy,
    load,
    located,
    operator,
    own_nodes,
    parameter_names,
    returning,
    tuple_of,
)

_N = TypeVar("_N", bound=ast.AST)
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
            ast.NotEq: "ne", ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_",
            ast.NotIn: "not_in"}
_ALWAYS_BOOL = (ast.Is, ast.IsNot, ast.In, ast.NotIn)  # Python makes a bool of `in` itself
_PREDICATES = {"isinstance", "issubclass", "callable", "hasattr"}
# Without division and subscripts, which may raise where the left operand said no.
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
            # Without arguments, super() reads the first parameter of the function that it stands
            # in, and that is a block's from here on.
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

    # Functions are converted as statements, classes stay as they are.
    visit_ClassDef = _unchanged
    visit_FunctionDef = _unchanged
    visit_AsyncFunctionDef = _unchanged


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


_ITERATORS = {"range", "enumerate", "zip"}


def convert_function(node: ast.FunctionDef) -> None:
    """Convert the body of a function, and of every function defined in it."""
    names = parameter_names(node.args)
    scope = Scope(names, node.body)
    node.body = _without_declarations(node.body)
    lowered = Jumps().tail(node.body, node)
    scope.bound |= bound_names(lowered) - scope.outer - scope.globals
    annotate(lowered)
    positional = [*node.args.posonlyargs, *node.args.args]
    converted = _Statements(scope, positional[0].arg if positional else None).block(lowered)
    declarations = [located(n, node.body[0]) for n in _declarations(scope)]
    # Elsewhere it were no docstring.
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    node.body = converted[:first] + declarations + converted[first:]


def _without_declarations(body: list[ast.stmt]) -> list[ast.stmt]:
    """Without global and nonlocal, which the caller writes anew; x: int = 1 becomes x = 1."""

    class Simple(ast.NodeTransformer):
        def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.stmt:
            return located(ast.Pass(), node)

        visit_Nonlocal = visit_Global

        # Blocks declare the name nonlocal, and such a name must not be annotated.
        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
            if node.value is None:
                return located(ast.Pass(), node)
            return located(ast.Assign([node.target], node.value), node)

        def _inner(self, node: ast.AST) -> ast.AST:
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _inner

    return [Simple().visit(n) for n in body]


def _declarations(scope: Scope) -> list[ast.stmt]:
    """The declarations of a function. Names that only blocks bind must be bound in it too."""
    made: list[ast.stmt] = []
    if scope.globals:
        made.append(ast.Global(sorted(scope.globals)))
    if scope.outer:
        made.append(ast.Nonlocal(sorted(scope.outer)))
    local = sorted(scope.bound - scope.params)
    if local:
        # Never run. Blocks may declare `nonlocal` only what a function around them binds.
        never = ast.Assign([ast.Name(n, ast.Store()) for n in local], constant(None))
        made.append(ast.If(constant(False), [never], []))
    return made


class _Statements:
    """Converts the statements of one scope."""

    def __init__(self, scope: Scope, first: str | None) -> None:
        self._scope = scope
        self._expressions = Expressions(first)
        self._count = 0

    def block(self, stmts: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [made for node in stmts for made in self._statement(node)]

    def _statement(self, node: ast.stmt) -> Sequence[ast.stmt]:
        if kept(node):  # it stays Python, with all that is in it, but for its expressions
            return [self._expressions.convert(node)]
        if isinstance(node, ast.If):
            return self._inline(node) if static(node.test) else self._if(node)
        if isinstance(node, ast.While):
            stops = node.stops  # type: ignore[attr-defined]
            return self._inline(node) if static(node.test) and not stops else self._while(node)
        if isinstance(node, ast.For):
            stops = node.stops  # type: ignore[attr-defined]
            return self._inline(node) if _plain(node.iter) and not stops else self._for(node)
        if isinstance(node, ast.FunctionDef):
            if not _suspends(node):
                convert_function(node)
            return [node]
        if isinstance(node, (ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        return self._inline(node) if blocks(node) else [self._expressions.convert(node)]

    def _inline(self, node: ast.stmt) -> list[ast.stmt]:
        """A compound statement that stays Python, with its blocks converted."""
        convert = self._expressions.convert
        if isinstance(node, (ast.If, ast.While)):
            node.test = convert(node.test)
        elif isinstance(node, ast.For):
            node.target, node.iter = convert(node.target), convert(node.iter)
        elif isinstance(node, ast.With):
            node.items = [convert(item) for item in node.items]
        elif isinstance(node, ast.Match):
            node.subject = convert(node.subject)
            for case in node.cases:
                case.guard = convert(case.guard) if case.guard else None
                case.body = self.block(case.body)
            return [node]
        for handler in getattr(node, "handlers", ()):
            # First of all, before the user's code hides it.
            check = located(ast.Expr(call("caught")), handler)
            handler.type = convert(handler.type) if handler.type else None
            handler.body = [check, *self.block(handler.body)]
        node.body = self.block(node.body)  # type: ignore[attr-defined]
        if not isinstance(node, ast.With):
            node.orelse = self.block(node.orelse)  # type: ignore[attr-defined]
        if isinstance(node, TRIES):
            node.finalbody = self.block(node.finalbody)  # type: ignore[attr-defined]
        return [node]

    # ------------------------------------------------------------------ choices and loops

    def _if(self, node: ast.If) -> list[ast.stmt]:
        here = self._name("if")
        state = self._state(node, [*node.body, *node.orelse], node.body + node.orelse)
        final = "return" in exits([node])
        test = self._expressions.convert(node.test)
        made = [self._block_function(f"{here}_then", (), node.body, node)]
        other: ast.expr = constant(None)
        if node.orelse:
            made.append(self._block_function(f"{here}_else", (), node.orelse, node))
            other = load(f"{here}_else")
        chosen = call("if_", test, load(f"{here}_then"), other, state, constant(node.lineno))
        return [*made, located(returning(chosen) if final else ast.Expr(chosen), node)]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        here = self._name("while")
        state = self._state(node, node.body, [node.test, *node.body])
        made: list[ast.stmt] = []
        test: ast.expr = constant(None)
        if not (isinstance(node.test, ast.Constant) and node.test.value):
            walrus = bound_names([node.test])
            value = located(returning(self._expressions.convert(node.test)), node)
            made.append(located(function(f"{here}_test", (), [*self._outward(walrus, node), value]),
                                node))
            test = load(f"{here}_test")
        made.append(self._block_function(f"{here}_body", (), node.body, node))
        chosen = call("while_", test, load(f"{here}_body"), _stop(node), state,
                      constant(node.lineno))
        return [*made, located(ast.Expr(chosen), node)]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        here, item = self._name("for"), f"{PREFIX}item"
        target = located(ast.Assign([node.target], load(item)), node.target)
        state = self._state(node, [target, *node.body], [target, *node.body])
        elements = node.iter
        special = isinstance(elements, ast.Call) and _iterates(elements.func)
        elements = self._expressions.convert(elements)
        if special:
            assert isinstance(elements, ast.Call) and isinstance(elements.func, ast.Call)
            elements.func = located(call("iterator", *elements.func.args), elements.func)
        body = self._block_function(f"{here}_body", (item,), [target, *node.body], node)
        chosen = call("for_", elements, load(f"{here}_body"), _stop(node), state,
                      constant(node.lineno))
        return [body, located(ast.Expr(chosen), node)]

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{PREFIX}{kind}{self._count}"

    def _block_function(self, name: str, params: Iterable[str], body: list[ast.stmt],
                        like: ast.AST) -> ast.stmt:
        bound = bound_names(body)
        return located(function(name, params, [*self._outward(bound, like), *self.block(body)]),
                       like)

    def _outward(self, bound: set[str], like: ast.AST) -> list[ast.stmt]:
        """The declarations by which a block binds the names of the function around it."""
        made: list[ast.stmt] = []
        if bound & self._scope.globals:
            made.append(ast.Global(sorted(bound & self._scope.globals)))
        if bound - self._scope.globals:
            made.append(ast.Nonlocal(sorted(bound - self._scope.globals)))
        return [located(n, like) for n in made]

    def _state(self, node: ast.stmt, body: list[ast.stmt],
               changing: Sequence[ast.AST]) -> ast.expr:
        """What the blocks may change, as an operator's argument. By liveness."""
        scope = self._scope
        bound = bound_names(changing)
        objects = places(body, bound - scope.globals)
        if any(isinstance(n, ast.Call) for n in own_nodes(changing)):
            bound = bound | scope.rewritten  # the call may be of an inner function that does it
        if not bound and not objects:
            return constant(None)
        cells = sorted(bound - scope.globals)  # as `co_freevars` is, by which State knows the kinds
        kinds = [_kind(name, node, scope.weak) for name in cells]
        shared = sorted(bound & scope.globals)
        return call("State", lazy(located(tuple_of(map(load, cells)), node)),
                    constant(tuple(kinds)), constant(tuple(shared)), tuple_of(objects))


def _kind(name: str, node: Any, weak: set[str]) -> str:
    """Who reads a name later, in the words of `State`."""
    if isinstance(node, ast.If):
        then, other = name in node.then_live, name in node.else_live  # type: ignore[attr-defined]
        found = "live" if then and other else "then" if then else "else" if other else ""
    else:
        found = "live" if name in node.live else "open" if name in node.late else ""
    if found and name == RESULT:
        return "open"
    return found or ("weak" if name in weak else "dead")


def _stop(node: ast.For | ast.While) -> ast.expr:
    stops = node.stops  # type: ignore[union-attr]
    return lazy(located(call("any_of", *map(load, stops)), node)) if stops else constant(None)


def _iterates(function: ast.expr) -> bool:
    """Whether a name may be that of range, enumerate, zip or tf.range."""
    if isinstance(function, ast.Attribute):
        return function.attr == "range"
    return isinstance(function, ast.Name) and function.id in _ITERATORS


def _plain(elements: ast.expr) -> bool:
    """Whether the elements of a loop are surely no tensor's: a display of values."""
    return isinstance(elements, (ast.Tuple, ast.List, ast.Constant))


def _suspends(node: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in own_nodes(node.body))
