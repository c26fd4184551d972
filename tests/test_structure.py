"""The source keeps the limits of `benchmarks/structure.py`, and that counts what it says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks.source_files import circles, imports, read
from benchmarks.structure import LEAST, LIMITS, Measure, measures, table


@cache
def _of_gtape() -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(read())}


@pytest.mark.parametrize("name", sorted({*LIMITS, *LEAST}))
def test_the_package_keeps_its_limits(name: str) -> None:
    measure = _of_gtape()[name]
    assert not measure.broken, "\n".join([table([measure]), *measure.places])


@pytest.fixture
def package(tmp_path: Path):
    """Makes a package of the files given and measures it."""

    def made(**files: str) -> Path:
        for name, text in {"__init__": "", **files}.items():
            file = tmp_path / "package" / f"{name.replace('_in_', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), encoding="utf-8")
        return tmp_path / "package"

    return made


def _of(package: Path) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures(read(package))}


def test_circles_are_followed_through_functions_and_not_through_types(package) -> None:
    sources = read(package(
        a="from package import b\n",
        b="""
            def f():
                from package.c import g
        """,
        c="""
            from typing import TYPE_CHECKING
            from . import a
            if TYPE_CHECKING:
                from package import d
        """,
        d="from package import a, c\n",
    ))
    assert circles(sources, late=False) == []
    assert circles(sources, late=True) == [["package.a", "package.b", "package.c"]]
    assert [(i.file, i.module, i.late, i.typing) for i in imports(sources)] == [
        ("a.py", "package.b", False, False), ("b.py", "package.c", True, False),
        ("c.py", "typing", False, False), ("c.py", "package.a", False, False),
        ("c.py", "package.d", False, True),
        ("d.py", "package.a", False, False), ("d.py", "package.c", False, False)]


def test_imports_in_functions_are_counted_as_statements(package) -> None:
    found = _of(package(a="def f():\n    from package import b, c\n    import json\n", b="", c=""))
    assert found["imports in functions"].value == 2
    assert found["imports in functions, of own modules"].value == 1


def test_annotations_are_read_within_quotes(package) -> None:
    found = _of(package(a="""
        from typing import Any
        x: int = 0
        def f(a: Any, b: "list[Any]", *c: Any) -> dict[str, int]: ...
    """))
    assert found["annotations"].value == 5
    assert found["annotations with Any, %"].value == 60
    assert found["annotations that are Any, %"].value == 40


def test_other_names_of_any_are_any(package) -> None:
    found = _of(package(
        a="""
            from typing import Any, TypeAlias
            Array: TypeAlias = Any
            Function = list[Any]
            def f(a: Array, b: Function) -> int: ...
        """,
        b="""
            import typing
            from package.a import Array as Numbers
            from package.a import Function
            Value: "TypeAlias" = "Numbers"
            def f(a: Numbers, b: Function, c: list[Value]) -> typing.Any: ...
            def g(Array: int, d: "Value") -> str: ...
        """,
    ))
    assert found["annotations"].value == 12
    assert found["annotations with Any, %"].value == 41.7
    assert found["annotations that are Any, %"].value == 33.3


def test_comments_are_what_readers_read(package) -> None:
    found = _of(package(a='''\
        """What it is."""
        x = 1  # why it is
        y = "# no comment"  # type: ignore
        #: The largest.
        z = 2  # noqa: E501
    '''))
    assert found["lines with a comment, %"].value == 40
    assert found["lines of docstrings, %"].value == 20
    assert found["type: ignore"].value == found["noqa"].value == 1


def test_registries_are_what_functions_and_other_modules_write_to(package) -> None:
    found = _of(package(
        a="""
            table = {}
            table["built here"] = 1
            rules = {}
            hooks = {}
            names = []
            def register(name, rule):
                rules[name] = rule
        """,
        b="""
            from package import a
            from package.a import names
            a.hooks["b"] = register
            names.append("b")
        """,
    ))
    assert [place.split()[1] for place in found["mutable registries"].places] == [
        "rules", "hooks", "names"]


def test_names_and_constants_that_stand_in_two_places_are_named(package) -> None:
    found = _of(package(
        a="FLOATS = ('half', 'single', 'double')\nclass Step: ...\nclass Plan: ...\n",
        b="_DTYPES = ('single', 'double', 'half')\nPAIR = (1, 2)\nclass Step: ...\n",
        c="def f(x):\n    made = x + 1\n    return made\n",
    ))
    assert found["class names of more than one class"].places == ["Step: a.py:2, b.py:3"]
    (constant,) = found["constants bound more than once"].places
    assert constant == "'double', 'half', 'single': a.py:1 FLOATS, b.py:1 _DTYPES"
    assert found["functions that end in return made or found"].value == 1
    assert found["the name made"].value == 2


def test_a_limit_is_broken_from_above_and_a_least_value_from_below(monkeypatch) -> None:
    monkeypatch.setitem(LIMITS, "circles", 3)
    monkeypatch.setitem(LEAST, "comments", 4)
    assert [Measure("circles", n).broken for n in (3, 4)] == [False, True]
    assert [Measure("comments", n).broken for n in (3.9, 4)] == [True, False]
