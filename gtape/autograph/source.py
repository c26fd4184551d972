"""The syntax tree of a function, found in its file and checked against its bytecode."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from gtape.autograph.syntax import (
    FUNCTIONS,
    PREFIX,
    bound_names,
    function,
    located,
    own_nodes,
    returning,
)

# The other bits of co_flags say what the code is; compile() refuses them.
_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names, 0)


#: Stands for the function's own name, so that the name means what it means outside.
_SELF = f"{PREFIX}function"


class Found(NamedTuple):
    """A function's node, and what around it bears on its bytecode.

    `owner` is the class around it, whose name is part of names like __x. `imports` are the names
    that the module imports: the compiler calls what they hold in another way.
    """

    node: ast.FunctionDef | ast.Lambda
    owner: str | None
    imports: tuple[str, ...]


# An entry is the tree of a whole file; a program's functions come from a few files at a time.
@functools.lru_cache(maxsize=8)  # by text, not by name: an edited file is another entry
def _functions(text: str) -> dict[tuple[int, str], list[Found]]:
    """The functions of a file by first line and name."""
    found: dict[tuple[int, str], list[Found]] = {}
    module = ast.parse(text)
    statements = [n for n in own_nodes(module.body) if isinstance(n, (ast.Import, ast.ImportFrom))]
    imports = tuple(sorted(bound_names(statements) - {"*"}))

    def walk(node: ast.AST, owner: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
                decorators = getattr(child, "decorator_list", ())
                line = min([child.lineno, *(d.lineno for d in decorators)])
                found.setdefault((line, name), []).append(Found(child, owner, imports))
            walk(child, child.name if isinstance(child, ast.ClassDef) else owner)

    walk(module, None)
    return found


def find(fn: FunctionType) -> Found | None:
    """The function's source, or None: not to be had, or not what the function was made from."""
    code = fn.__code__
    linecache.checkcache(code.co_filename)  # the file may have been edited since it was cached
    text = "".join(linecache.getlines(code.co_filename, fn.__globals__))
    try:
        candidates = _functions(text).get((code.co_firstlineno, code.co_name), [])
    except (SyntaxError, ValueError, RecursionError):  # ValueError: null bytes, up to Python 3.11
        return None
    for found in candidates:
        # Conversion rewrites it; the other is cached.
        copy = found._replace(node=_copied(found.node))
        # Type parameters have a scope of their own, which blocks cannot join.
        if not getattr(copy.node, "type_params", None) and _is_source(copy, code):
            return copy
    return None


def _copied(node: object) -> Any:
    """A deep copy without what the scope around the function evaluates."""
    if isinstance(node, list):
        return [_copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: _copied(value) for name, value in ast.iter_fields(node)}
    return type(node)(**fields, **{name: getattr(node, name) for name in node._attributes
                                   if hasattr(node, name)})


def _bare(node: Any) -> None:
    """Take away what was evaluated when the function was defined."""
    args = node.args
    args.defaults, args.kw_defaults = [], [None] * len(args.kwonlyargs)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = None
    if isinstance(node, FUNCTIONS):
        node.decorator_list, node.returns = [], None


def compiled(found: Found, code: CodeType, extra: tuple[str, ...] = ()) -> CodeType:
    """The code of the node as a function with the free names of `code`, and `extra`."""
    node = found.node
    _bare(node)
    if not isinstance(node, ast.Lambda):
        node.name = _SELF
    inner = returning(node) if isinstance(node, ast.Lambda) else node
    outer: ast.stmt = function(f"{PREFIX}outer", (*code.co_freevars, *extra), [inner])
    if found.owner is not None:
        outer = ast.ClassDef(found.owner, [], [], [outer], [])
        outer.type_params = []  # type: ignore[attr-defined]
    imports = [ast.Import([ast.alias(name)]) for name in found.imports]
    tree = ast.Module([located(n, node) for n in (*imports, outer)], [])
    made = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    for _ in range(2 if found.owner is None else 3):  # out of `outer`, and of the class around it
        made = next(c for c in made.co_consts if isinstance(c, CodeType))
    return made


def _is_source(found: Found, code: CodeType) -> bool:
    try:
        made = compiled(found, code)
    except (SyntaxError, ValueError, RecursionError):
        return False
    # An assert may have been rewritten when the module was loaded, as pytest does.
    if any(isinstance(n, ast.Assert) for n in ast.walk(found.node)):
        return _signature(made) == _signature(code) and made.co_freevars == code.co_freevars
    return _same(made, code)


def _signature(code: CodeType) -> tuple[object, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
            # Inside `outer` all are nested.
            code.co_varnames[:count], code.co_flags & ~inspect.CO_NESTED)


def _same(a: CodeType, b: CodeType) -> bool:
    return (_signature(a) == _signature(b) and a.co_code == b.co_code and a.co_names == b.co_names
            and a.co_varnames == b.co_varnames and a.co_freevars == b.co_freevars
            and a.co_cellvars == b.co_cellvars and len(a.co_consts) == len(b.co_consts)
            and all(_same_constant(x, y) for x, y in zip(a.co_consts, b.co_consts)))


def _same_constant(a: Any, b: Any) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _same(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, str) and _SELF in a:  # the qualified name of a class
        return bool(b.endswith(a.partition(_SELF)[2]))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    # Sets have no order to print; by text 0.0 is not -0.0, and nan is nan.
    return bool(a == b) if isinstance(a, frozenset) else repr(a) == repr(b)


def named_as(code: CodeType, name: str, qualname: str) -> CodeType:
    """`code` under its function's name; blocks inside it bear the name of their function."""
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(
        _inner(c, name, qualname) if isinstance(c, CodeType)
        else qualname if c == code.co_qualname else c for c in code.co_consts))


def _inner(code: CodeType, name: str, qualname: str) -> CodeType:
    if code.co_name.startswith(PREFIX):
        return named_as(code, name, qualname)
    return named_as(code, code.co_name, f"{qualname}.<locals>.{code.co_name}")


def names(node: ast.AST) -> Iterator[str]:
    """Every identifier that a tree reads, binds or declares as a variable."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            yield n.id
        elif isinstance(n, ast.arg):
            yield n.arg
