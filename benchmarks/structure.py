"""What the source is made of: sizes, comments, annotations, imports, circles, names.

Run `python -m benchmarks.structure` or `python benchmarks/structure.py`. It reads the package's
files and imports none; another folder may be named, a package of an earlier commit or of another
project. `--limits` prints alone what has a limit, and ends with status 1 where one is broken, which
`tests/test_structure.py` asserts too.

Limits are what the package had when they were set, a little rounded: they keep it from getting
worse, and follow it down. They are no goals. Those are: `Any` in at most 15 % of annotations, at
most 100 imports of own modules in functions, at most 3 circles, comments on 4 to 8 % of lines, no
class name that stands for two classes.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.source_files import (
    FUNCTIONS,
    PACKAGE,
    Source,
    circles,
    imported,
    imports,
    read,
)

#: The largest value allowed.
LIMITS: dict[str, float] = {
    "files over 700 lines": 0,
    "functions over 40 lines": 14,
    "annotations with Any, %": 13.9,
    "imports in functions, of own modules": 44,
    "circles at module level": 0,
    "circles": 0,
    "modules in circles": 0,
    "type: ignore": 112,
    "noqa": 15,
    "calls of getattr and hasattr": 262,
    "modules with a __getattr__": 8,
    "mutable registries": 35,
    "class names of more than one class": 0,
    "functions that end in return made or found": 45,
    "constants bound more than once": 0,
}
#: The smallest.
LEAST: dict[str, float] = {"lines with a comment, %": 3.9}

#: Names that say nothing of what they stand for, counted wherever they are read or bound.
EMPTY_NAMES = ("made", "found")
_WITH_DOCSTRING = (*FUNCTIONS, ast.ClassDef, ast.Module)
#: Comments that tools read and that explain nothing.
_DIRECTIVES = ("type: ignore", "noqa", "pragma:", "fmt:", "!")
_CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque",
               "WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
_WRITES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
           "remove", "setdefault", "update"}


class Measure(NamedTuple):
    """A number, and what it counts where that is short enough to read."""

    name: str
    value: float
    places: Sequence[str] = ()

    @property
    def broken(self) -> bool:
        least, most = LEAST.get(self.name, self.value), LIMITS.get(self.name, self.value)
        return not least <= self.value <= most

    @property
    def limit(self) -> str:
        if self.name in LEAST:
            return f">= {LEAST[self.name]:g}"
        return f"{LIMITS[self.name]:g}" if self.name in LIMITS else ""


def measures(sources: Sequence[Source]) -> list[Measure]:
    """All of them, as the table has them."""
    groups = (_sizes, _words, _annotations, _late_imports, _circles, _questions, _registries,
              _classes, _empty_names, _constants)
    return [measure for group in groups for measure in group(sources)]


def _sizes(sources: Sequence[Source]) -> Iterator[Measure]:
    lines = [source.lines for source in sources]
    yield Measure("files", len(lines))
    yield Measure("lines", sum(lines))
    yield from _spread("lines of a file", lines, {"p90": 0.9})
    yield Measure("files under 50 lines", sum(n < 50 for n in lines))
    yield Measure("files over 700 lines", sum(n > 700 for n in lines),
                  [source.file for source in sources if source.lines > 700])
    functions = {f"{source.at(node)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
                 for source in sources for node in source.nodes if isinstance(node, FUNCTIONS)}
    yield Measure("functions", len(functions))
    yield from _spread("lines of a function", list(functions.values()), {"p90": 0.9, "p99": 0.99})
    long = [f"{place}, {length} lines" for place, length in functions.items() if length > 40]
    yield Measure("functions over 40 lines", len(long), long)


def _words(sources: Sequence[Source]) -> Iterator[Measure]:
    total = sum(source.lines for source in sources)
    comments = sum(map(_explains, [token for source in sources for token in source.comments]))
    docstrings = sum(_docstring_lines(node) for source in sources for node in source.nodes)
    yield Measure("lines with a comment, %", _percent(comments, total))
    yield Measure("lines of docstrings, %", _percent(docstrings, total))


def _annotations(sources: Sequence[Source]) -> Iterator[Measure]:
    other_names = _names_of_any(sources)
    every: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for source in sources:
        names = other_names[source.module]
        every[source.file.partition("/")[0]] += [
            (any(_is_any(node, names) for node in ast.walk(annotation)), _is_any(annotation, names))
            for annotation in _annotated(source)]
    total = [annotation for package in every.values() for annotation in package]
    shares = {package: _percent(sum(has for has, _ in given), len(given))
              for package, given in every.items() if "." not in package and given}
    yield Measure("annotations", len(total))
    yield Measure("annotations with Any, %", _percent(sum(has for has, _ in total), len(total)),
                  [f"{package} {share:.0f} %" for package, share
                   in sorted(shares.items(), key=lambda item: -item[1])])
    yield Measure("annotations that are Any, %", _percent(sum(bare for _, bare in total),
                                                          len(total)))


def _late_imports(sources: Sequence[Source]) -> Iterator[Measure]:
    own = {source.module for source in sources}
    late = {(arrow.file, arrow.line): arrow.module in own for arrow in imports(sources)
            if arrow.late and not arrow.typing}
    yield Measure("imports in functions", len(late))
    yield Measure("imports in functions, of own modules", sum(late.values()))


def _circles(sources: Sequence[Source]) -> Iterator[Measure]:
    for name, late in (("circles at module level", False), ("circles", True)):
        every = circles(sources, late=late)
        yield Measure(name, len(every), [f"{len(circle)}: {', '.join(circle)}" for circle in every])
    yield Measure("modules in circles", sum(map(len, every)))


def _questions(sources: Sequence[Source]) -> Iterator[Measure]:
    comments = [token.string for source in sources for token in source.comments]
    called = Counter(node.func.id for source in sources for node in source.nodes
                     if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    lazy = [source.file for source in sources for node in source.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    yield Measure("type: ignore", sum("type: ignore" in comment for comment in comments))
    yield Measure("noqa", sum("noqa" in comment for comment in comments))
    yield Measure("calls of getattr and hasattr", called["getattr"] + called["hasattr"])
    yield Measure("modules with a __getattr__", len(lazy))


def _registries(sources: Sequence[Source]) -> Iterator[Measure]:
    """Containers bound at module level that functions, or other modules, write to."""
    modules = {source.module for source in sources}
    written = {name for source in sources for name in _written(source, modules)}
    places = [f"{source.at(statement)} {name}" for source in sources
              for statement, name, value in _bound(source.tree) if _is_container(value)
              and f"{source.module}.{name}" in written]
    yield Measure("mutable registries", len(places), places)


def _classes(sources: Sequence[Source]) -> Iterator[Measure]:
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(source.at(node))
    yield _repeated("class names of more than one class", places)


def _empty_names(sources: Sequence[Source]) -> Iterator[Measure]:
    ends = [node.body[-1] for source in sources for node in source.nodes
            if isinstance(node, FUNCTIONS)]
    vague = sum(isinstance(end, ast.Return) and isinstance(end.value, ast.Name)
                and end.value.id in EMPTY_NAMES for end in ends)
    names = Counter(node.id for source in sources for node in source.nodes
                    if isinstance(node, ast.Name))
    yield Measure(f"functions that end in return {' or '.join(EMPTY_NAMES)}", vague)
    yield from (Measure(f"the name {name}", names[name]) for name in EMPTY_NAMES)


def _constants(sources: Sequence[Source]) -> Iterator[Measure]:
    """Sequences of three or more literals that several modules bind, in whatever order."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for statement, name, value in _bound(source.tree):
            literals = [item.value for item in getattr(value, "elts", ())
                        if isinstance(item, ast.Constant)]
            if len(literals) > 2 and len(literals) == len(value.elts):
                key = ", ".join(sorted(map(repr, literals)))
                places[key].append(f"{source.at(statement)} {name}")
    yield _repeated("constants bound more than once", places)


def _repeated(name: str, places: dict[str, list[str]]) -> Measure:
    several = {key: where for key, where in places.items() if len(where) > 1}
    return Measure(name, len(several), [f"{key}: {', '.join(where)}" for key, where in
                                        sorted(several.items(), key=lambda item: -len(item[1]))])


def _spread(name: str, values: list[int], points: dict[str, float]) -> Iterator[Measure]:
    ordered = sorted(values) or [0]
    yield Measure(f"{name}, median", statistics.median(ordered))
    for point, share in points.items():
        yield Measure(f"{name}, {point}", ordered[int(share * (len(ordered) - 1))])
    yield Measure(f"{name}, max", ordered[-1])


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _explains(token: tokenize.TokenInfo) -> bool:
    return not token.string.lstrip("#: ").startswith(_DIRECTIVES)


def _docstring_lines(node: ast.AST) -> int:
    if not isinstance(node, _WITH_DOCSTRING) or ast.get_docstring(node, clean=False) is None:
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def _annotated(source: Source) -> Iterator[ast.expr]:
    for node in source.nodes:
        given = (node.returns if isinstance(node, FUNCTIONS)
                 else node.annotation if isinstance(node, (ast.arg, ast.AnnAssign)) else None)
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            given = ast.parse(given.value, mode="eval").body
        if given is not None:
            yield given


def _names_of_any(sources: Sequence[Source]) -> dict[str, set[str]]:
    """The names that every module has for `Any`: its own, bound to it, and those it imports."""
    modules = {source.module for source in sources}
    names: dict[str, set[str]] = {source.module: {"Any"} for source in sources}
    full = {"typing.Any"}
    before = 0
    while len(full) > before:
        before = len(full)
        for source in sources:
            here = names[source.module]
            here |= {name for name, origin in _origins(source, modules).items() if origin in full}
            here |= {name for _, name, value in _bound(source.tree) if _stands_for_any(value, here)}
            full |= {f"{source.module}.{name}" for name in here}
    return names


def _stands_for_any(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value in names
    if isinstance(value, ast.BinOp):  # Any | None
        return _stands_for_any(value.left, names) or _stands_for_any(value.right, names)
    return _is_any(value, names)


def _is_any(annotation: ast.AST, names: set[str]) -> bool:
    if isinstance(annotation, ast.Name):
        return annotation.id in names
    return isinstance(annotation, ast.Attribute) and annotation.attr == "Any"


def _bound(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """The names that a module binds by `=`, and their values."""
    for node in tree.body:
        targets = (node.targets if isinstance(node, ast.Assign)
                   else [node.target] if isinstance(node, ast.AnnAssign) else [])
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:
                yield node, target.id, node.value


def _origins(source: Source, modules: set[str]) -> dict[str, str]:
    """The dotted names of what the file imports from modules, by what it calls them."""
    names = {}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            full = [*imported(node, source, modules)]
            names |= dict(zip((alias.asname or alias.name for alias in node.names), full))
    return names


def _is_container(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _CONTAINERS
    return isinstance(value, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp))


def _written(source: Source, modules: set[str]) -> Iterator[str]:
    """The dotted names of what functions of the file change in place, its own or imported."""
    names = _origins(source, modules)
    for top in source.tree.body:
        late = isinstance(top, (*FUNCTIONS, ast.ClassDef))
        for changed in filter(None, map(_changed, ast.walk(top))):
            if isinstance(changed, ast.Name) and (late or changed.id in names):
                yield names.get(changed.id, f"{source.module}.{changed.id}")
            elif isinstance(changed, ast.Attribute) and isinstance(changed.value, ast.Name):
                yield f"{names.get(changed.value.id, changed.value.id)}.{changed.attr}"


def _changed(node: ast.AST) -> ast.expr | None:
    """What `node` changes in place: x of `x[i] = y`, `del x[i]`, `x |= y` and `x.append(y)`."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.AugAssign):
        return node.target
    called = node.func if isinstance(node, ast.Call) else None
    return called.value if isinstance(called, ast.Attribute) and called.attr in _WRITES else None


def table(rows: Iterable[Measure]) -> str:
    lines = [f"{row.name:<50} {row.value:>8,g} {row.limit:>8}{'  broken' if row.broken else ''}"
             for row in rows]
    return "\n".join([f"{'':<50} {'':>8} {'limit':>8}", *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description="What the source of a package is made of.")
    parser.add_argument("package", type=Path, nargs="?", default=PACKAGE)
    parser.add_argument("--limits", action="store_true", help="only what has a limit")
    given = parser.parse_args()
    rows = [row for row in measures(read(given.package.resolve()))
            if row.limit or not given.limits]
    print(table(rows))
    for row in rows:
        if row.places and (row.broken or not given.limits):
            print(f"\n{row.name}", *row.places, sep="\n  ")
    return int(given.limits and any(row.broken for row in rows))


if __name__ == "__main__":
    sys.exit(main())
