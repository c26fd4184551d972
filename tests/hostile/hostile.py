"""Calls every public function with a hostile value in the place of each argument in turn.

`python tests/hostile/hostile.py --folder TEMPORARY [--seed N] [--share 0.1] [--traced]
[--only NAME] [--plant]` makes the calls in this process, under a limit of memory, with the folder
as the present one, and prints a line of JSON for each call, and one for each that hangs, allocates
wildly, raises what is no answer to a wrong argument, or changes an object and refuses.
test_hostile_calls.py does so for a share of them; all of them take some minutes.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
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

import hostile_planted
import numpy as np
from hostile_callables import Method, beside, functions, prepare, usual

import gtape as tf

#: Address space of the process, in bytes: what allocates wildly meets it.
MEMORY = 4 << 30
#: Seconds for one call.
LONGEST = 10.0
#: Texts for people, which may be anything that has one; and what must have a truth value, for
#: which it is asked after the change that the call is about.
_TEXTS = {"name", "message", "summarize", "read_value"}
#: (function, parameter): what the caller hands over runs for good.
_ENDLESS = {("while_loop", "cond")}


#: Code whose errors are no user's.
_OWN = (str(Path(tf.__file__).parent), "hostile_planted.py")


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


def _dicts() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["a"] = made
    return made


def _deep() -> Any:
    made: Any = 1.0
    for _ in range(1000):
        made = [made]
    return made


def _function(*values: Any) -> Any:
    return len(values[0])


class _Class:
    def __init__(self, *values: Any) -> None:
        self.first = int(values[0])


#: The functions above that a caller hands over.
_USERS = {"_function", "__init__", "<lambda>"}

#: Hostile values, made anew for each call.
VALUES: dict[str, Callable[[], Any]] = {
    "-1": lambda: -1, "0": lambda: 0, "7": lambda: 7, "1.5": lambda: 1.5, "2**31": lambda: 2**31,
    "2**40": lambda: 2**40, "2**63": lambda: 2**63, "-2**70": lambda: -(2**70),
    "nan": lambda: math.nan, "inf": lambda: math.inf, "1e30": lambda: 1e30, "True": lambda: True,
    "None": lambda: None, "a string": lambda: "x", "bytes": lambda: b"\0", "[]": list, "{}": dict,
    "[None]": lambda: [None], "ragged": lambda: [[1], [2, 3]], "[-1, -1]": lambda: [-1, -1],
    "[2**40, 2**30]": lambda: [2**40, 2**30], "[0, 0]": lambda: [0, 0],
    "['a', 1]": lambda: ["a", 1],
    "a circle": _circle, "a circle of dicts": _dicts, "deep": _deep, "{'a': 1}": lambda: {"a": 1},
    "object": object, "no array": _NoArray, "no repr": _NoRepr,
    "a function": lambda: _function, "a class": lambda: _Class,
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
    "a RaggedTensor": lambda: tf.ragged.constant([[1.0], [], [2.0, 3.0]]),
    "a SparseTensor": lambda: tf.SparseTensor([[0, 1]], [2.0], [2, 2]),
    "IndexedSlices": lambda: tf.IndexedSlices(tf.ones([1, 2]), [1], [2, 2]),
    "a Dataset": lambda: tf.data.Dataset.range(2),
    "a table": lambda: tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1),
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


def arguments(name: str, function: Callable[..., Any]) -> Iterator[
        tuple[str, str, dict[str, Any]]]:
    """(parameter, name of the hostile value, parameters that are given) of each call to make.

    "-> value" is the name of a function that gives a hostile value.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return
    usable = [p for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD]
    for place in usable:
        if place.name in _TEXTS:
            continue
        called = callable(usual(name, place.name)) and not isinstance(
            usual(name, place.name), tf.Tensor | type | tf.DType)
        given = {p.name: None for p in usable
                 if p.default is p.empty or p is place or p.name in beside(name)}
        for value in [*VALUES, *(f"-> {v}" for v in VALUES if called)]:
            yield place.name, value, given


def made_of(name: str, given: dict[str, Any], place: str, value: str) -> dict[str, Any]:
    """The arguments of a call."""
    return {p: _hostile(value) if p == place else usual(name, p) for p in given}


def _hostile(value: str) -> Any:
    if value.startswith("-> "):
        make = VALUES[value.removeprefix("-> ")]
        return lambda *values: make()
    return VALUES[value]()


def _call(function: Callable[..., Any], given: dict[str, Any], traced: bool) -> Any:
    """The call; of a method whose object changes, that of one made before it."""
    subject = None
    if isinstance(function, Method) and function.before is not None:
        subject = function.make()
    parameters = inspect.signature(function).parameters.values()
    several = any(p.kind is p.VAR_POSITIONAL and p.name in given for p in parameters)
    firsts = [p for p in parameters if p.name in given and (
        p.kind is p.POSITIONAL_ONLY or (several and p.kind is p.POSITIONAL_OR_KEYWORD)
        or p.kind is p.VAR_POSITIONAL)]

    def run(values: dict[str, Any]) -> Any:
        first = [values[p.name] for p in firsts]
        rest = {n: v for n, v in values.items() if n not in [p.name for p in firsts]}
        found = function if subject is None else function.of(subject)  # type: ignore[attr-defined]
        return found(*first, **rest)

    try:
        if traced:
            tensors = [n for n, v in given.items() if isinstance(v, tf.Tensor)]
            return tf.function(lambda *xs: run(given | dict(zip(tensors, xs))))(
                *[given[n] for n in tensors])
        return used(run(given))
    except PROPER:
        if subject is not None:
            function.check(subject)  # type: ignore[attr-defined]
        raise


def used(made: Any) -> None:
    """Use what a call gave, as a program would that does not know yet that it is bad."""
    if inspect.isroutine(made):
        made = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]]).apply(made)
    if isinstance(made, tf.data.Dataset):
        made.cardinality()
        list(made.take(3))
        repr(made.element_spec)
    elif isinstance(made, tf.lookup.KeyValueTensorInitializer | tf.lookup.TextFileInitializer):
        tf.lookup.StaticHashTable(made, "" if made.value_dtype is tf.string else -1)
    elif hasattr(made, "export") and made.key_dtype is tf.int64:
        made.lookup([1, 7])
        made.size()
    elif isinstance(made, tf.RaggedTensor):
        made.to_list()
    elif type(made).__module__.startswith("gtape."):
        repr(made)


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
        return "" if type(error) is IndexError and _in_words(error) else _told(error)
    except tf.errors.OpError as error:
        cause = error.__cause__
        if cause is not None and _slipped(cause):
            return f"{type(error).__name__} of {_told(cause)}"
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


def _slipped(cause: BaseException) -> bool:
    """Whether an error that became another one is a slip of ours: neither in words, nor of the
    system, nor of a function that the user handed over."""
    last = traceback.extract_tb(cause.__traceback__)[-1]
    own = last.filename.startswith(_OWN[0]) or last.filename.endswith(_OWN[1])
    return own and not _in_words(cause) and not isinstance(cause, (OSError, MemoryError))


def _in_words(error: BaseException) -> bool:
    """Whether a line of gtape or a user's function raised it, and not Python or NumPy under one."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    if last.filename == __file__:
        return last.name in _USERS
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
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _late)
    warnings.simplefilter("ignore")
    chance, started, count = random.Random(options.seed), time.monotonic(), 0
    os.chdir(options.folder)
    prepare(Path())
    named = hostile_planted.functions() if options.plant else functions()
    for name, function in named.items():
        if options.only and options.only not in name:
            continue
        for place, value, given in arguments(name, function):
            if chance.random() >= options.share or (name, place) in _ENDLESS:
                continue
            print(json.dumps(["try", f"{name}({place}={value})"]), flush=True)
            why = verdict(function, made_of(name, given, place, value), options.traced,
                          1.0 if options.plant else LONGEST)
            count += 1
            if why:
                print(json.dumps(["bad", f"{name}({place}={value})", why]), flush=True)
    print(json.dumps(["done", count, round(time.monotonic() - started, 1)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
