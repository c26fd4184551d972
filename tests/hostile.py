"""Calls every public function with a hostile value in the place of each argument in turn.

`python tests/hostile.py [--seed N] [--share 0.1] [--traced] [--only NAME] [--plant]` makes the
calls in this process, under a limit of memory, and prints a line of JSON for each call, and one
for each that hangs, allocates wildly or raises what is no answer to a wrong argument.
tests/test_hostile_calls.py does so for a share of them; all of them take some minutes.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gtape as tf
from gtape import _names

#: Address space of the process, in bytes: what allocates wildly meets it.
MEMORY = 4 << 30
#: Seconds for one call.
LONGEST = 10.0
_SPACES = ("bitwise", "debugging", "image", "linalg", "math", "nest", "nn", "ragged", "random",
           "sets", "signal", "sparse")
#: They change what later calls see, wait for input, or are about the machine.
_SKIPPED = {
    "control_dependencies", "device", "debugging.disable_check_numerics",
    "debugging.enable_check_numerics", "debugging.set_log_device_placement", "explain_none",
    "get_logger", "init_scope", "name_scope", "no_op", "print", "random.set_global_generator",
    "random.set_seed"}


#: Texts for people, which may be anything that has one.
_TEXTS = {"name", "message", "summarize"}
#: (function, parameter): what the caller hands over runs for good.
_ENDLESS = {("while_loop", "cond")}


class Planted:
    """Offenders of each kind, which must be reported."""

    @staticmethod
    def slip(x: Any) -> Any:
        return [1, 2][x]

    @staticmethod
    def hang(size: Any) -> Any:
        while size == -1:
            pass
        return size

    @staticmethod
    def hoard(shape: Any) -> Any:
        return np.ones(int(shape)) if type(shape) is int and shape > 0 else shape

    @staticmethod
    def words(axis: Any) -> Any:
        return axis + 1


def _methods() -> dict[str, Callable[..., Any]]:
    """Methods of objects that are made anew for each call."""
    made: dict[str, Callable[..., Any]] = {}
    kinds: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
        "Variable": (lambda: tf.Variable([[1.0, 2.0], [3.0, 4.0]]), (
            "assign", "assign_add", "assign_sub", "scatter_nd_update", "scatter_nd_add",
            "scatter_update", "scatter_add", "gather_nd", "sparse_read", "batch_scatter_update")),
        "TensorArray": (lambda: tf.TensorArray(tf.float32, 3).unstack(tf.ones([3, 2])), (
            "write", "read", "gather", "scatter", "split", "unstack", "size", "stack", "concat")),
        "Generator": (lambda: tf.random.Generator.from_seed(1), (
            "normal", "uniform", "truncated_normal", "uniform_full_int", "binomial", "split",
            "skip", "make_seeds", "reset", "reset_from_seed", "reset_from_key_counter")),
        "TensorShape": (lambda: tf.TensorShape([2, None]), (
            "concatenate", "is_compatible_with", "__add__", "__eq__")),
        "Tensor": (lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]), (
            "__getitem__", "__add__", "__matmul__", "__pow__", "__rtruediv__", "__eq__", "__lt__",
            "__mod__", "set_shape")),
    }
    for kind, (make, names) in kinds.items():
        for name in names:
            method = getattr(make(), name, None)
            if method is None:
                continue

            def call(*args: Any, make: Any = make, name: str = name, **named: Any) -> Any:
                return getattr(make(), name)(*args, **named)

            call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
            made[f"{kind}.{name}"] = call
    for name in ("Variable", "TensorArray", "TensorSpec", "TensorShape", "IndexedSlices"):
        made[name] = getattr(tf, name)
    for name in ("from_seed", "from_state", "from_key_counter"):
        made[f"Generator.{name}"] = getattr(tf.random.Generator, name)
    return made


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function, and methods of the public classes, by name."""
    found = {name: getattr(tf, name) for name in _names.ROOT}
    for space in _SPACES:
        module = getattr(tf, space)
        for name in getattr(module, "__all__", None) or dir(module):
            found[f"{space}.{name}"] = getattr(module, name)
    found = {name: f for name, f in found.items()
             if inspect.isroutine(f) and "._" not in name and name not in _SKIPPED}
    return dict(sorted((found | _methods()).items()))


def _usual(parameter: str) -> Any:
    """What a parameter of this name usually gets."""
    square = tf.constant([[2.0, 1.0], [1.0, 3.0]])
    image = tf.ones([1, 4, 4, 1])
    table: dict[str, Any] = {
        "axis": 0, "axes": 1, "dtype": tf.float32, "shape": [2, 2], "seed": [1, 2], "perm": [1, 0],
        "indices": tf.constant([[0], [1]]), "segment_ids": tf.constant([0, 1]), "num_segments": 2,
        "num": 2, "depth": 3, "k": 1, "n": 2, "size": [4, 4], "begin": [0, 0], "end": [1, 1],
        "padding": "SAME", "strides": 1, "ksize": 2, "filters": tf.ones([2, 2, 1, 1]),
        "images": image, "image": image, "dilations": 1, "equation": "ij,jk->ik",
        "paddings": [[1, 1], [1, 1]],
        "multiples": [1, 2], "repeats": 2, "num_or_size_splits": 2, "fn": lambda *a: a[-1],
        "cond": lambda x: False, "body": lambda x: x, "loop_vars": [1.0], "func": lambda *a: 1.0,
        "Tout": tf.float32, "inp": [square], "elems": square, "dims": [2, 2], "window_length": 4,
        "frame_length": 2, "frame_step": 1, "rate": 0.5, "block_shape": [1, 1],
        "crops": [[0, 0]] * 2,
        "output_shape": [1, 4, 4, 1], "target_height": 4, "target_width": 4, "offset_height": 0,
        "offset_width": 0, "true_fn": lambda: 1.0, "false_fn": lambda: 2.0, "pred": True,
        "branch_index": 0, "branch_fns": [lambda: 1.0], "limit": 5, "start": 0, "delta": 1,
        "num_rows": 2, "lam": 2.0, "alpha": 2.0, "counts": 3.0, "probs": 0.5, "logits": square,
        "num_samples": 2, "structure": [1, 2], "flat_sequence": [1, 2], "block_size": 2,
        "labels": tf.constant([0, 1]), "condition": tf.constant([True, False]),
        "mask": [True, False],
        "values": [square, square], "tensors": [square, square], "inputs": [square, square],
        "rank": 2, "data": square, "updates": square, "window_shape": [2, 2],
        "index": 1, "message": "text", "value": square, "lengths": [1, 2], "key": 0, "spec": [2]}
    return table.get(parameter, square)


class _NoArray:
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no array to be had")


class _NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr to be had")


def _circle() -> list[Any]:
    made: list[Any] = [1.0]
    made.append(made)
    return made


def _deep() -> Any:
    made: Any = 1.0
    for _ in range(1000):
        made = [made]
    return made


#: Hostile values, made anew for each call.
VALUES: dict[str, Callable[[], Any]] = {
    "-1": lambda: -1, "0": lambda: 0, "7": lambda: 7, "1.5": lambda: 1.5, "2**31": lambda: 2**31,
    "2**40": lambda: 2**40, "2**63": lambda: 2**63, "-2**70": lambda: -(2**70),
    "nan": lambda: math.nan, "inf": lambda: math.inf, "1e30": lambda: 1e30, "True": lambda: True,
    "None": lambda: None, "a string": lambda: "x", "bytes": lambda: b"\0", "[]": list, "{}": dict,
    "[None]": lambda: [None], "ragged": lambda: [[1], [2, 3]], "[-1, -1]": lambda: [-1, -1],
    "[2**40, 2**30]": lambda: [2**40, 2**30], "[0, 0]": lambda: [0, 0],
    "['a', 1]": lambda: ["a", 1],
    "a circle": _circle, "deep": _deep, "{'a': 1}": lambda: {"a": 1}, "object": object,
    "no array": _NoArray, "no repr": _NoRepr, "a function": lambda: len, "a class": lambda: int,
    "an array of objects": lambda: np.array([1, "a", None], object),
    "datetime": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "zeros [0]": lambda: tf.zeros([0]), "zeros [0, 3]": lambda: tf.zeros([0, 3]),
    "rank 5": lambda: tf.ones([2, 1, 2, 1, 2]), "scalar": lambda: tf.constant(1.5),
    "int [-1, 9]": lambda: tf.constant([-1, 9]), "strings": lambda: tf.constant(["a", "b"]),
    "complex": lambda: tf.constant([1j, 2j]), "bools": lambda: tf.constant([True, False]),
    "nans": lambda: tf.constant([math.nan, math.inf]),
    "uint8": lambda: tf.constant([1, 255], tf.uint8),
    "float16": lambda: tf.constant([[1.0, 6e4]], tf.float16),
    "a Variable": lambda: tf.Variable([1.0]),
    "(): a tuple": lambda: ((), (1,)), "slice": lambda: slice(None), "...": lambda: ...,
}

#: What answers a wrong argument. A function that is traced first allocates at its call, where
#: NumPy's own MemoryError says what there is no memory for.
PROPER = (TypeError, ValueError, NotImplementedError, RuntimeError, tf.errors.OpError)
#: Of these what only a slip of ours raises.
SLIPS = (tf.errors.InternalError, IndexError, KeyError, RecursionError, UnicodeError)
#: What Python and NumPy say of their own, which helps nobody who called a function of gtape.
_RAW = re.compile(
    r"object (is not|has no|does not|cannot be)|unsupported operand|not supported between|"
    r"must be real number|unhashable type|ufunc '|array is too big|Maximum allowed|iterator is too|"
    r"could not be broadcast|cannot reshape array|setting an array element|inhomogeneous|"
    r"not enough values to unpack|too many values to unpack|can't multiply sequence|"
    r"argument must be|invalid literal|only integer scalar|"
    r"must be integers? or slices|axes don't match|expected .* got|Cannot interpret|"
    r"can only concatenate|too large to convert|bad operand type|could not convert|iteration over|"
    r"is out of bounds|zero-size array|not understood|Unable to allocate|can't convert|no dtype|"
    r"missing .* required|NaN to integer|infinity to integer|negative dimensions|"
    r"no repr to be had|no array to be had", re.IGNORECASE)


def arguments(function: Callable[..., Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(parameter, name of the hostile value, keyword arguments) of each call to make."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return
    usable = [p for p in parameters if p.name != "self" and p.kind in (
        p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for place in usable:
        if place.name in _TEXTS:
            continue
        for value in VALUES:
            given = {p.name: None for p in usable if p.default is p.empty or p is place}
            yield place.name, value, given


def _made(given: dict[str, Any], place: str, value: str) -> dict[str, Any]:
    return {name: VALUES[value]() if name == place else _usual(name) for name in given}


def _call(function: Callable[..., Any], given: dict[str, Any], traced: bool) -> Any:
    names = list(given)
    positional = [p.name for p in inspect.signature(function).parameters.values()
                  if p.kind is p.POSITIONAL_ONLY]

    def run(values: dict[str, Any]) -> Any:
        first = [values[n] for n in positional if n in values]
        return function(*first, **{n: v for n, v in values.items() if n not in positional})

    if not traced:
        return run(given)
    tensors = [n for n in names if isinstance(given[n], tf.Tensor)]
    return tf.function(lambda *xs: run(given | dict(zip(tensors, xs))))(
        *[given[n] for n in tensors])


class Late(BaseException):
    """A call took too long."""


def _late(*_: Any) -> None:
    raise Late


def verdict(function: Callable[..., Any], given: dict[str, Any], traced: bool,
            longest: float = LONGEST) -> str:
    """Why the call is no good; empty where it is."""
    signal.setitimer(signal.ITIMER_REAL, longest)
    try:
        _call(function, given, traced)
    except Late:
        return f"takes longer than {longest:g} s"
    except SLIPS as error:
        return _told(error)
    except tf.errors.OpError as error:
        return "" if str(error).strip() else "has no words"
    except PROPER as error:
        return _told(error) if _RAW.search(str(error)) and not _in_words(error) else ""
    except MemoryError as error:
        return "" if traced else _told(error)
    except BaseException as error:
        return _told(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def _in_words(error: BaseException) -> bool:
    """Whether a line of gtape raised it, and not Python or NumPy under one."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "raise" in (last.line or "") or "<lambda>" in last.name


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    inner = [f for f in frames if "gtape" in f.filename] or list(frames)
    at = f"{Path(inner[-1].filename).name}:{inner[-1].lineno}"
    try:
        text = str(error)
    except Exception:
        text = "(no text)"
    return f"{type(error).__name__} at {at}: {text[:150]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--traced", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--plant", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _late)
    warnings.simplefilter("ignore")
    chance, started, count = random.Random(options.seed), time.monotonic(), 0
    named = functions() if not options.plant else {
        f"planted {name}": f.__func__ for name, f in vars(Planted).items()
        if isinstance(f, staticmethod)}
    for name, function in named.items():
        if options.only and options.only not in name:
            continue
        for place, value, given in arguments(function):
            if chance.random() >= options.share or (name, place) in _ENDLESS:
                continue
            print(json.dumps(["try", f"{name}({place}={value})"]), flush=True)
            why = verdict(function, _made(given, place, value), options.traced,
                          1.0 if options.plant else LONGEST)
            count += 1
            if why:
                print(json.dumps(["bad", f"{name}({place}={value})", why]), flush=True)
    print(json.dumps(["done", count, round(time.monotonic() - started, 1)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
