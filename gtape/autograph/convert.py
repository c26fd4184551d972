"""convert: a function whose choices and loops understand traced tensors, and so do the user's own
functions that it calls, which are converted when called."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sysconfig
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

import gtape as tf
from gtape.autograph import source
from gtape.autograph.conditions import traced_tensor
from gtape.autograph.rewriting import Expressions, convert_function
from gtape.autograph.syntax import PREFIX

_SKIP = "_gtape_do_not_convert_"
#: Blocks become functions, and a `yield` or `await` in one would suspend that function.
_SUSPENDING = (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
#: Functions that look at the variables of the function that calls them.
_FRAME_READERS = {"locals", "vars", "dir", "eval", "exec"}

#: What converted functions know by the name of PREFIX: the module `operators`, which converts what
#: they call and therefore puts itself here.
OPERATORS = CellType()

#: By code and file: the converted code, or None where the function stays as it is.
#: Equal text makes equal codes: the file tells functions of two modules apart.
_made: dict[tuple[CodeType, str], CodeType | None] = {}


def do_not_convert(func: Callable[..., object] | None = None) -> Any:
    """Leave `func` as it is where a traced function calls it: its conditions must be Python's.

    A decorator, with brackets or without.
    """
    if func is None:
        return do_not_convert
    target = func.__func__ if isinstance(func, MethodType) else func
    setattr(target, _SKIP, True)
    return func


def convert(fn: object) -> Any:
    """`fn` with `if`, `while`, `for`, `and`, `or`, `not` and calls by operators that accept
    traced tensors.

    On Python values and on eager tensors the result does what `fn` does. Globals, variables of
    functions around it, defaults, name and documentation are those of `fn`; tracebacks show its
    lines. Functions that it calls are converted when they are called, unless they belong to
    Python, to gtape or to another installed package.

    A function is given back unchanged where it cannot be converted soundly: its source is not to
    be had or no longer the one that was run, it is a generator or a coroutine, it reads its own
    variables by `locals`, `eval` and the like, or `do_not_convert` marks it.
    """
    if isinstance(fn, MethodType):
        made = convert(fn.__func__)
        return fn if made is fn.__func__ else MethodType(made, fn.__self__)
    if type(fn) is not FunctionType or fn.__dict__.get(_SKIP):
        return fn
    key = (fn.__code__, fn.__code__.co_filename)
    if key not in _made:
        _made[key] = _converted_code(fn)
    code = _made[key]
    return fn if code is None else _rebuilt(fn, code)


def _converted_code(fn: FunctionType) -> CodeType | None:
    code = fn.__code__
    if code.co_flags & _SUSPENDING or PREFIX in code.co_freevars:
        return None
    found = source.find(fn)
    if found is None or not _sound(found.node):
        return None
    try:
        if isinstance(found.node, ast.Lambda):
            Expressions(None).convert(found.node)
        else:
            convert_function(found.node)
        made = source.compiled(found, code, (PREFIX,))
    except (RecursionError, SyntaxError):
        return None
    return source.named_as(made, code.co_name, code.co_qualname)


def _sound(node: ast.AST) -> bool:
    used = set(source.names(node))
    return not used & _FRAME_READERS and not any(n.startswith(PREFIX) for n in used)


def _rebuilt(fn: FunctionType, code: CodeType) -> FunctionType:
    """A function of `code` that shares the variables and the attributes of `fn`."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    cells[PREFIX] = OPERATORS
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__,
                        tuple(cells[name] for name in code.co_freevars))
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
    made.__doc__ = fn.__doc__
    # From Python 3.14 on annotations are computed when they are asked for.
    lazily = "__annotate__" if hasattr(fn, "__annotate__") else "__annotations__"
    setattr(made, lazily, getattr(fn, lazily))
    made.__dict__.update(fn.__dict__)
    return made


_PACKAGES = ("site-packages", "dist-packages")
# With a separator at the end, for lib/python3 is also where lib/python3.12 begins.
_LIBRARIES = tuple(os.path.join(path, "") for path in (
    os.path.realpath(sysconfig.get_path("stdlib")),
    os.path.realpath(sysconfig.get_path("platstdlib")),
    os.path.dirname(os.path.realpath(tf.__file__)),
    # It may be built in place, outside site-packages.
    os.path.dirname(os.path.realpath(np.__file__))))


# An entry is a path and a bool; `realpath` asks the file system for every part of a path.
@functools.lru_cache(maxsize=1024)
def _of_user(file: str) -> bool:
    """Whether code of this file belongs to the user's program."""
    if file.startswith("<frozen"):  # importlib and others within the interpreter have no file
        return False
    path = os.path.realpath(file)
    return not path.startswith(_LIBRARIES) and not any(p in path.split(os.sep) for p in _PACKAGES)


def _converted_callee(function: FunctionType) -> FunctionType:
    if not _of_user(function.__code__.co_filename):
        return function
    return convert(function)


def callee(function: Any) -> Any:
    """What to call in place of `function`: itself, or its converted form."""
    kind = type(function)
    if kind is FunctionType:
        return _converted_callee(function)
    if kind is MethodType:
        inner = function.__func__
        if type(inner) is not FunctionType:
            return function
        made = _converted_callee(inner)
        return function if made is inner else MethodType(made, function.__self__)
    if isinstance(function, type):
        return _NUMBERS.get(function, function)
    # Of the type, where Python looks: one among an instance's attributes is not called.
    call = next((vars(k)["__call__"] for k in kind.__mro__ if "__call__" in vars(k)), None)
    if type(call) is not FunctionType:
        return function
    made = _converted_callee(call)
    return function if made is call else MethodType(made, function)


def _float(*args: Any) -> Any:
    found = traced_tensor(args[0]) if len(args) == 1 else None
    # Of 32 bits, as TensorFlow's autograph has it; so is int below.
    return float(*args) if found is None else tf.cast(found, tf.float32)


def _int(*args: Any, **kwargs: Any) -> Any:
    found = traced_tensor(args[0]) if len(args) == 1 and not kwargs else None
    return int(*args, **kwargs) if found is None else tf.cast(found, tf.int32)


_NUMBERS: dict[type, Any] = {float: _float, int: _int}
