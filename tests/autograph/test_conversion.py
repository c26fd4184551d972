"""What a converted function keeps of the function, and which functions stay as they are."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gtape as tf
from gtape.autograph import convert, do_not_convert
from gtape.autograph.convert import callee

_SCALE = 2.0


def _module(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_name_defaults_documentation_and_attributes() -> None:
    def f(a: int, b: int = 2, *, c: int = 3) -> int:
        """What it does."""
        return a if a else b + c

    f.note = "kept"  # type: ignore[attr-defined]
    g = convert(f)
    assert g is not f
    assert (g.__name__, g.__qualname__, g.__module__) == (f.__name__, f.__qualname__, f.__module__)
    assert (g.__doc__, g.__defaults__, g.__kwdefaults__) == ("What it does.", (2,), {"c": 3})
    assert inspect.signature(g) == inspect.signature(f)
    assert g.note == "kept"
    assert g(0) == 5


def test_variables_of_the_functions_around_are_shared() -> None:
    count, late = 0, "early"

    def f() -> str:
        nonlocal count
        if late:
            count += 1
        return late

    g = convert(f)
    late = "late"
    assert (g(), f(), count) == ("late", "late", 2)


def test_globals_are_live(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: float) -> float:
        return x * _SCALE if x else 0.0

    g = convert(f)
    monkeypatch.setitem(globals(), "_SCALE", 5.0)
    assert g(2.0) == 10.0


def test_private_names_and_super_in_methods() -> None:
    class Base:
        def value(self) -> int:
            return 1

    class Derived(Base):
        def __init__(self) -> None:
            self.__hidden = 5

        def value(self) -> int:
            if self.__hidden:
                return super().value() + self.__hidden
            return 0

    made = Derived()
    assert convert(made.value)() == 6
    assert convert(made.value).__self__ is made


def test_a_traceback_shows_the_lines_of_the_user() -> None:
    def f(x: int) -> int:
        for i in range(x):
            if i == 1:
                raise KeyError("here")
        return x

    with pytest.raises(KeyError) as caught:
        convert(f)(3)
    first = inspect.getsourcelines(f)[1]
    frames = [frame for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert [f.lineno for f in frames[1:]] == [first + 1, first + 2, first + 3]
    assert {f.name for f in frames[1:]} == {"f"}
    assert frames[-1].line == 'raise KeyError("here")'


def test_lambdas_on_one_line_are_told_apart() -> None:
    f, g, h = (lambda x: 1 if x else 2), (lambda x: 3 if x else 4), (lambda x: 1 if x else 2)
    made = [convert(k) for k in (f, g, h)]
    assert all(m is not k for m, k in zip(made, (f, g, h)))
    assert [m(0) for m in made] == [2, 4, 2]


def test_a_file_that_changed_is_not_used(tmp_path: Path) -> None:
    made = _module(tmp_path / "edited.py", "def f(x):\n    return 1 if x else 2\n")
    assert convert(made.f) is not made.f
    stale = _module(tmp_path / "stale.py", "def f(x):\n    return 1 if x else 2\n")
    (tmp_path / "stale.py").write_text("def f(x):\n    return 1 if x else 777\n")
    assert convert(stale.f) is stale.f


def _generator(n: int) -> Any:
    yield n


async def _coroutine() -> None:
    return None


def _reads_locals(x: int) -> Any:
    return locals() if x else None


def _evaluates(x: int) -> Any:
    return eval("x") if x else None


@pytest.mark.parametrize("fn", [_generator, _coroutine, _reads_locals, _evaluates, len, int, 3])
def test_left_as_they_are(fn: Any) -> None:
    assert convert(fn) is fn


def test_without_source_left_as_it_is() -> None:
    space: dict[str, Any] = {}
    exec("def f(x):\n    return 1 if x else 2", space)
    assert convert(space["f"]) is space["f"]


@pytest.mark.parametrize("mark", [do_not_convert, do_not_convert()])
def test_do_not_convert(mark: Any) -> None:
    @mark
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    assert convert(f) is f
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: f(x))(tf.constant(1.0))


class _Callable:
    def __call__(self, x: Any) -> Any:
        return x if x > 0 else -x


def _helper(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def test_only_functions_of_the_user_are_converted_when_called() -> None:
    assert callee(_helper) is not _helper
    assert callee(_Callable()) is not None
    assert callee(_Callable())(-2) == 2
    for function in (functools.reduce, tf.reduce_sum, inspect.signature, len, str, _Callable):
        assert callee(function) is function


def test_functions_that_it_calls_take_traced_tensors() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return _helper(x) + _Callable()(x) + sum(map(_helper, [1, 2]))

    assert f(tf.constant(-2.0)) == 7.0


def test_converting_twice_is_converting_once() -> None:
    made = convert(_helper)
    assert convert(made) is made
