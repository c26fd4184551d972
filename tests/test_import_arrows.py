"""Who may import whom: read from the source with `ast`, nothing is run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gtape

_ROOT = Path(gtape.__file__).parent

#: What a package may import when it is imported itself. What is not listed may import anything.
_ARROWS = {
    "numerics": {"numerics"},
    "core": {"core"},
    "kinds": {"core", "kinds", "numerics"},
    "ops": {"core", "kinds", "numerics", "ops"},
    "devices": {"core", "devices", "kinds", "numerics"},
    "files": {"core", "files", "kinds", "numerics", "ops"},
}
#: Imports that point upwards, inside functions: the recorders' own arithmetic is written in ops.
_LATE = {
    ("core", "ops.layout"), ("core", "ops.packing"), ("core", "kinds"),
    ("kinds", "ops.layout"), ("kinds", "ops.scalars"), ("kinds", "ops.creation"),
    ("kinds", "ops.batching"), ("kinds", "ops.packing"), ("kinds", "ops.passing"),
    ("ops", "devices"),
}


class Import(NamedTuple):
    """One name imported by a file of the package."""

    file: str
    line: int
    module: str
    late: bool

    @property
    def layer(self) -> str:
        return self.file.split("/")[0]

    def __str__(self) -> str:
        return f"gtape/{self.file}:{self.line} imports {self.module}"


def _modules(node: ast.Import | ast.ImportFrom, file: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = ["gtape", *file.relative_to(_ROOT).parts[: -node.level]]
        base = ".".join([*package, base]).rstrip(".")
    for alias in node.names:
        parts = base.split(".")
        file_of_name = _ROOT.joinpath(*parts[1:]) / f"{alias.name}.py"
        is_module = parts[0] == "gtape" and file_of_name.exists()
        yield f"{base}.{alias.name}" if is_module or base == "gtape" else base


def _walk(node: ast.AST, file: Path, late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            for module in _modules(child, file):
                yield Import(file.relative_to(_ROOT).as_posix(), child.lineno, module, late)
        inside = late or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from _walk(child, file, inside)


def _imports() -> list[Import]:
    found = []
    for file in sorted(_ROOT.rglob("*.py")):
        found += list(_walk(ast.parse(file.read_text(encoding="utf-8")), file, False))
    return found


_IMPORTS = _imports()


@pytest.mark.parametrize("layer", sorted(_ARROWS))
def test_arrows_point_down(layer: str) -> None:
    wrong = [str(i) for i in _IMPORTS if i.layer == layer and not i.late
             and i.module.startswith("gtape.")
             and i.module.split(".")[1] not in _ARROWS[layer]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layer", sorted(_ARROWS))
def test_late_imports_upwards_are_the_documented_ones(layer: str) -> None:
    wrong = []
    for found in _IMPORTS:
        if found.layer != layer or not found.late or not found.module.startswith("gtape."):
            continue
        target = found.module.removeprefix("gtape.")
        allowed = target.split(".")[0] in _ARROWS[layer] or any(
            (layer, ".".join(target.split(".")[:n])) in _LATE for n in (1, 2))
        if not allowed:
            wrong.append(str(found))
    assert not wrong, "\n".join(wrong)


def test_only_the_demo_the_cli_and_late_imports_use_other_packages() -> None:
    core = {"gtape", "numpy", "__future__", *sys.stdlib_module_names}
    wrong = [str(i) for i in _IMPORTS
             if not i.late and i.layer not in ("demo", "cli")
             and i.module.split(".")[0] not in core]
    assert not wrong, "\n".join(wrong)


def test_numerics_never_imports_anything_but_numpy() -> None:
    allowed = {"numpy", "__future__", *sys.stdlib_module_names}
    wrong = [str(i) for i in _IMPORTS if i.layer == "numerics"
             and i.module.split(".")[0] not in allowed
             and not i.module.startswith("gtape.numerics")]
    assert not wrong, "\n".join(wrong)


def test_nothing_unpickles() -> None:
    wrong = [str(i) for i in _IMPORTS if i.module.split(".")[0] in ("pickle", "marshal", "shelve")]
    assert not wrong, "\n".join(wrong)


def test_importing_gtape_imports_neither_ops_nor_devices_nor_keras() -> None:
    wrong = [str(i) for i in _IMPORTS if i.file == "__init__.py" and not i.late
             and i.module not in ("__future__", "gtape._names", "gtape._version")]
    assert not wrong, "\n".join(wrong)
