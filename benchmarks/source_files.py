"""The files of a package, the modules that they import, and the circles of these.

Nothing is imported: the files are read with `ast`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "gtape"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Import(NamedTuple):
    """A module that a file imports: late, within a function, or for type checkers alone."""

    file: str
    line: int
    module: str
    late: bool
    typing: bool


class Source:
    """A file of the package, parsed."""

    def __init__(self, file: Path, package: Path) -> None:
        text = file.read_text(encoding="utf-8")
        inside = file.relative_to(package)
        parts = [package.name, *inside.with_suffix("").parts]
        self.file = inside.as_posix()
        self.module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        #: What its relative imports count from.
        self.folder = parts[:-1]
        self.lines = text.count("\n")
        self._text = text
        self.tree = ast.parse(text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, bool, bool]]:
        return list(_statements(self.tree))

    @cached_property
    def comments(self) -> list[tokenize.TokenInfo]:
        if "#" not in self._text:  # which spares half of the time
            return []
        tokens = tokenize.generate_tokens(io.StringIO(self._text).readline)
        return [token for token in tokens if token.type == tokenize.COMMENT]

    def at(self, node: ast.stmt) -> str:
        return f"{self.file}:{node.lineno}"


def read(package: Path = PACKAGE) -> list[Source]:
    return [Source(file, package) for file in sorted(package.rglob("*.py"))]


def imports(sources: Sequence[Source]) -> list[Import]:
    """What every file imports, a statement's modules one by one."""
    modules = {source.module for source in sources}
    return [Import(source.file, statement.lineno, module, late, typing)
            for source in sources for statement, late, typing in source.statements
            if isinstance(statement, (ast.Import, ast.ImportFrom))
            for module in dict.fromkeys(imported(statement, source, modules).values())]


def circles(sources: Sequence[Source], *, late: bool) -> list[list[str]]:
    """The strongly connected sets of two modules or more, the largest first.

    `late` follows imports within functions too. Those for type checkers are left out.
    """
    module_of = {source.file: source.module for source in sources}
    arrows: dict[str, set[str]] = {source.module: set() for source in sources}
    for arrow in imports(sources):
        if arrow.module in arrows and not arrow.typing and (late or not arrow.late):
            arrows[module_of[arrow.file]].add(arrow.module)
    reached = {module: _reached(arrows, module) for module in arrows}
    mutual = {frozenset(other for other in reached[module] if module in reached[other])
              for module in arrows}
    return sorted((sorted(circle) for circle in mutual if len(circle) > 1),
                  key=lambda circle: (-len(circle), circle))


def imported(node: ast.Import | ast.ImportFrom, source: Source,
             modules: set[str]) -> dict[str, str]:
    """The modules by what is imported: `a.b` of `from a import b` where that is one."""
    if isinstance(node, ast.Import):
        return {alias.name: alias.name for alias in node.names}
    inside = source.folder[: len(source.folder) + 1 - node.level] if node.level else []
    base = ".".join([*inside, *([node.module] if node.module else [])])
    names = [f"{base}.{alias.name}" for alias in node.names]
    return {name: name if name in modules else base for name in names}


def _statements(node: ast.AST, late: bool = False,
                typing: bool = False) -> Iterator[tuple[ast.stmt, bool, bool]]:
    """Every statement under `node`, whether in a function, and whether under `TYPE_CHECKING`."""
    for field, value in ast.iter_fields(node):
        guarded = typing or (field == "body" and isinstance(node, ast.If)
                             and ast.unparse(node.test).endswith("TYPE_CHECKING"))
        for child in value if isinstance(value, list) else ():
            if isinstance(child, ast.stmt):
                yield child, late, guarded
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                yield from _statements(child, late or isinstance(child, FUNCTIONS), guarded)


def _reached(arrows: dict[str, set[str]], start: str) -> set[str]:
    """The modules that importing `start` imports; itself only on a circle."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = arrows[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen
