"""numpy_function, py_function and print: Python code among tensor code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.tensor import Tensor


def _typed(made: Any, wanted: Any, name: str) -> Any:
    """The results as tensors of the dtypes asked for."""
    if wanted is None or isinstance(wanted, (list, tuple)):
        dtypes = [as_dtype(d) for d in wanted or ()]
        results = [] if made is None else list(made) if isinstance(made, (list, tuple)) else [made]
        if len(results) != len(dtypes):
            raise ValueError(f"{name}: Tout names {len(dtypes)} results, the function returned "
                             f"{len(results)}")
        return [convert(r, d) for r, d in zip(results, dtypes)]
    return convert(made, as_dtype(wanted))


def numpy_function(func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
                   stateful: bool = True, name: str | None = None) -> Any:
    """func(*inp as NumPy arrays), its results as tensors. No gradient flows: use `py_function`.

    Args:
        func: a function of NumPy arrays; None makes this a decorator.
        inp: its arguments.
        Tout: the dtype of its result, or a list of the dtypes of several.

    Raises:
        ValueError: another number of results.
    """
    if func is None:
        return lambda function: lambda *args: numpy_function(function, args, Tout)
    made = func(*[convert(x).numpy() for x in inp or ()])
    if made is None:
        return None
    return _typed(made, Tout, "numpy_function")


def py_function(func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None,
                name: str | None = None) -> Any:
    """func(*inp as tensors), its results as tensors; gradients flow through it.

    Args:
        func: a function of tensors; None makes this a decorator.
        inp: its arguments.
        Tout: the dtype of its result, or a list of the dtypes of several.

    Raises:
        TypeError: no `Tout`.
        ValueError: another number of results, or a tensor of another dtype.
    """
    if Tout is None:
        raise TypeError("py_function: Tout, the dtypes of the results, must be given; [] for none")
    if func is None:
        return lambda function: lambda *args: py_function(function, args, Tout)
    return _typed(func(*[convert(x) for x in inp or ()]), Tout, "py_function")


def _number(value: Any) -> str:
    """A number in the fewest digits that say it: 6 or 9 of a float, 15 or 17 of a double."""
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return f'"{text}"'
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (np.floating, float)):
        few, many = (15, 17) if isinstance(value, float) else (6, 9)
        short = f"{float(value):.{few}g}"
        return short if type(value)(short) == value else f"{float(value):.{many}g}"
    return str(value)


def _array_text(array: np.ndarray, edge: int, depth: int = 0) -> str:
    """Nested brackets, of each axis the first and last `edge` entries (all when negative)."""
    if not array.ndim:
        return _number(array[()])
    cut = 0 <= 2 * edge < len(array)
    shown = [*array[:edge], *array[len(array) - edge:]] if cut else list(array)
    parts = [_array_text(np.asarray(a), edge, depth + 1) if array.ndim > 1 else _number(a)
             for a in shown]
    if cut:
        parts.insert(edge, "...")
    between = "\n" * (array.ndim - 1) + " " * (depth + 1) if array.ndim > 1 else " "
    return "[" + between.join(parts) + "]"


def _text(value: Any, edge: int) -> str:
    if isinstance(value, Tensor) or hasattr(value, "_read_"):
        tensor = value._read_() if hasattr(value, "_read_") else value
        return _array_text(np.asarray(tensor._peek()), edge)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v, edge)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(_text(v, edge) for v in value) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(_text(v, edge) for v in value) + ("," if len(value) == 1 else "") + (
            ")")
    return repr(value)


def _write(text: str, stream: Any) -> None:
    if isinstance(stream, str):
        if not stream.startswith("file://"):
            raise ValueError(f"print: output_stream must be a stream, a function of the text, or "
                             f"'file://path'; got {stream!r}")
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    elif callable(stream):
        stream(text)
    elif hasattr(stream, "write"):
        stream.write(text)
    else:
        raise ValueError(f"print: output_stream must be a stream, a function of the text, or "
                         f"'file://path'; got {stream!r}")


def print_(*inputs: Any, output_stream: Any = None, summarize: int | None = 3, sep: str = " ",
           end: str = "\n", name: str | None = None) -> None:
    """Print values; tensors show their numbers, also inside lists, tuples and dicts.

    Args:
        output_stream: sys.stderr unless given; another stream, 'file://path' to append to a file,
            or a function of the text, such as a logger's method.
        summarize: how many entries at either end of an axis are shown; -1 for all.

    Raises:
        ValueError: another `output_stream`.
    """
    edge = 3 if summarize is None else summarize
    parts: Sequence[str] = [v if isinstance(v, str) else _text(v, edge) for v in inputs]
    _write(sep.join(parts) + end, sys.stderr if output_stream is None else output_stream)
