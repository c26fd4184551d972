"""numpy_function, py_function and print: Python code among tensor code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import here, resolve, tracer_now
from gtape.core.convert import convert
from gtape.core.device import ArrayType, current_device
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Readable, Tensor
from gtape.ops.arguments import as_function, as_items
from gtape.trace.host_steps import HostCallback


def _typed(result: object, wanted: object, name: str) -> Any:
    """The results as tensors of the dtypes asked for. Raises ValueError: another number of
    results."""
    if wanted is None or isinstance(wanted, (list, tuple)):
        dtypes = [_dtype(d) for d in wanted or ()]
        results = [] if result is None else (
            list(result) if isinstance(result, (list, tuple)) else [result])
        if len(results) != len(dtypes):
            raise ValueError(f"{name}: Tout names {len(dtypes)} results, the function returned "
                             f"{len(results)}")
        return [convert(r, d) for r, d in zip(results, dtypes)]
    if result is None:
        raise InvalidArgumentError(f"{name}: Tout names one result, the function returned None; "
                                   f"return it, or write Tout=[]")
    return convert(result, _dtype(wanted))


def _dtype(wanted: object) -> DType:
    return as_dtype(getattr(wanted, "dtype", wanted))  # Tout may hold TensorSpecs


class _Slot:
    """Where a tensor stood in a structure."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def _types(wanted: Any, name: str) -> list[tuple[Spec, ArrayType]]:
    """The types of the results of a function that is called when the traced function runs. Raises
    NotTraceableError: `wanted` does not say their shapes."""
    given = wanted if isinstance(wanted, (list, tuple)) else [] if wanted is None else [wanted]
    types = []
    for spec in given:
        shape = getattr(spec, "shape", None)
        if shape is None or not shape.is_fully_defined():
            raise NotTraceableError(
                f"{resolve(*here())}: {name}: the shapes of the results are known only after the "
                f"call; give them in Tout, as in Tout=tf.TensorSpec([3], tf.float32), to have the "
                f"function around it compiled")
        dtype = as_dtype(spec.dtype)
        types.append((Spec(tuple(shape.as_list()), dtype), current_device().typed(dtype)))
    return types


def _hosted(name: str, call: Callable[..., Any], given: Any, wanted: object, *,
            has_side_effect: bool, differentiable: bool) -> Any:
    """`call(*tensors)`: now, or at every call of the traced function, with results as wanted."""
    inputs = [convert(x) for x in (() if given is None else as_items(given, f"{name}: inp"))]
    if tracer_now() is None:
        return call(*inputs)
    # Eagerly the results say what they are; a trace has to know before the call.
    types = _types(wanted, name)
    single = not (wanted is None or isinstance(wanted, (list, tuple)))

    def run(*tensors: Tensor) -> list[Tensor]:
        made = call(*tensors)
        results = [made] if single else made or []
        for result, (spec, _) in zip(results, types):
            if result.spec != spec:
                raise InvalidArgumentError(f"{name}: Tout says {spec}, the function returned "
                                           f"{result.spec}")
        return results

    op = HostCallback(name, run, [s for s, _ in types], [t for _, t in types],
                      has_side_effect=has_side_effect, differentiable=differentiable)
    made = list(op(*inputs))
    return made[0] if single else made


def numpy_function(func: Callable[..., object] | None = None, inp: Any = None, Tout: object = None,
                   stateful: bool = True, name: str | None = None) -> Any:
    """func(*inp as NumPy arrays), its results as tensors. No gradient flows: use `py_function`.

    Args:
        func: a function of NumPy arrays; None makes this a decorator.
        inp: its arguments.
        Tout: the dtype of its result, or a list of the dtypes of several. In a traced function
            TensorSpecs, because the shapes must be known; without them that runs eagerly.
        stateful: it is called at every call of a traced function, even if nobody needs the result.

    Raises:
        ValueError: another number of results.
    """
    if func is None:
        return lambda function: lambda *args: numpy_function(function, args, Tout)
    as_function(func, "numpy_function: func")

    def call(*tensors: Tensor) -> Any:
        result = func(*[x.numpy() for x in tensors])
        if result is None and not Tout:
            return None
        return _typed(result, Tout, "numpy_function")

    return _hosted("numpy_function", call, inp, Tout, has_side_effect=stateful,
                   differentiable=False)


def py_function(func: Callable[..., object] | None = None, inp: Any = None, Tout: object = None,
                name: str | None = None) -> Any:
    """func(*inp as tensors), its results as tensors; gradients flow through it.

    In a traced function `func` runs at every call, and once more where a gradient is computed.

    Args:
        func: a function of tensors; None makes this a decorator.
        inp: its arguments.
        Tout: the dtype of its result, or a list of the dtypes of several. In a traced function
            TensorSpecs, because the shapes must be known; without them that runs eagerly.

    Raises:
        TypeError: no `Tout`.
        ValueError: another number of results, or a tensor of another dtype.
    """
    if Tout is None:
        raise TypeError("py_function: Tout, the dtypes of the results, must be given; [] for none")
    if func is None:
        return lambda function: lambda *args: py_function(function, args, Tout)
    as_function(func, "py_function: func")

    def call(*tensors: Tensor) -> Any:
        return _typed(func(*tensors), Tout, "py_function")

    # As TensorFlow's EagerPyFunc, which is stateful: it runs though nobody needs the result.
    return _hosted("py_function", call, inp, Tout, has_side_effect=True, differentiable=True)


def _number(value: object) -> str:
    """A number in the fewest digits that say it: 6 or 9 of a float, 15 or 17 of a double."""
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return f'"{text}"'
    if isinstance(value, (bool, np.bool_)):  # tf.print shows 1 and 0
        return str(int(value))
    if isinstance(value, (np.floating, float)):
        # So many digits always, and at most so many, tell two numbers of the type apart (IEEE 754).
        few, many = (15, 17) if isinstance(value, float) else (6, 9)
        short = f"{float(value):.{few}g}"
        return short if type(value)(short) == value else f"{float(value):.{many}g}"
    return str(value)


def array_text(array: np.ndarray, edge: int, depth: int = 0) -> str:
    """Nested brackets, of each axis the first and last `edge` entries (all when negative)."""
    if not array.ndim:
        return _number(array[()])
    cut = 0 <= 2 * edge < len(array)
    shown = [*array[:edge], *array[len(array) - edge:]] if cut else list(array)
    parts = [array_text(np.asarray(a), edge, depth + 1) if array.ndim > 1 else _number(a)
             for a in shown]
    if cut:
        parts.insert(edge, "...")
    between = "\n" * (array.ndim - 1) + " " * (depth + 1) if array.ndim > 1 else " "
    return "[" + between.join(parts) + "]"


def _text(value: object, edge: int) -> str:
    if isinstance(value, (Tensor, Readable)):
        tensor = value._read_() if isinstance(value, Readable) else value
        # Printing uses no value: no tape is told.
        return array_text(np.asarray(tensor._peek()), edge)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v, edge)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(_text(v, edge) for v in value) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(_text(v, edge) for v in value) + ("," if len(value) == 1 else "") + (
            ")")
    return repr(value)


def _write(text: str, stream: object) -> None:
    if isinstance(stream, str):
        if not stream.startswith("file://"):
            raise ValueError(f"print: output_stream must be a stream, a function of the text, or "
                             f"'file://path'; got {shown(stream)}")
        # Opened anew for each line: whoever reads the file sees it at once.
        with open(stream.removeprefix("file://"), "a", encoding="utf-8") as file:
            file.write(text)
    elif callable(stream):
        stream(text)
    elif hasattr(stream, "write"):
        stream.write(text)
    else:
        raise ValueError(f"print: output_stream must be a stream, a function of the text, or "
                         f"'file://path'; got {shown(stream)}")


def print_(*inputs: object, output_stream: object = None, summarize: int | None = 3, sep: str = " ",
           end: str = "\n", name: str | None = None) -> None:
    """Print values; tensors show their numbers, also inside lists, tuples and dicts.

    In a traced function the line is printed at every call.

    Args:
        output_stream: sys.stderr unless given; another stream, 'file://path' to append to a file,
            or a function of the text, such as a logger's method.
        summarize: how many entries at either end of an axis are shown; -1 for all.

    Raises:
        ValueError: another `output_stream`.
    """
    edge = 3 if summarize is None else summarize  # TensorFlow's default

    def run(*values: object) -> list[Tensor]:
        parts = [v if isinstance(v, str) else _text(v, edge) for v in values]
        # sys.stderr of this moment: it may have been redirected since.
        _write(sep.join(parts) + end, sys.stderr if output_stream is None else output_stream)
        return []

    if tracer_now() is None:
        run(*inputs)
        return
    tensors: list[Tensor] = []
    places = _swapped(list(inputs), lambda v: isinstance(v, (Tensor, Readable)),
                      lambda v: _noted(v, tensors))
    HostCallback("print", lambda *given: run(*_swapped(
        places, lambda v: type(v) is _Slot, lambda v: given[v.number])), (), (),
        has_side_effect=True, differentiable=False)(*tensors)


def _noted(value: TensorLike, tensors: list[Tensor]) -> _Slot:
    tensors.append(convert(value))
    return _Slot(len(tensors) - 1)


def _swapped(value: Any, wanted: Callable[[Any], bool], swap: Callable[[Any], Any]) -> Any:
    """Lists, tuples and dicts with `swap(leaf)` in the place of the leaves that are wanted."""
    if wanted(value):
        return swap(value)
    if isinstance(value, dict):
        return {k: _swapped(v, wanted, swap) for k, v in value.items()}
    # Exactly these: a named tuple would need its fields one by one, and is printed by its repr.
    if type(value) in (list, tuple):
        return type(value)(_swapped(v, wanted, swap) for v in value)
    return value
