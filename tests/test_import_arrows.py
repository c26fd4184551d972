"""Who may import whom: read from the source with `ast`, nothing is run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.source_files import Import, imports, read

ROOT = Path(__file__).resolve().parents[1]
_DOCUMENT = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def _rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    _, _, after = _DOCUMENT.partition(f"\n## {heading}\n")
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", after, re.MULTILINE)
    assert table is not None, f"docs/architecture.md lost its table of {heading}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[1].splitlines()]


def _names(cell: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", cell)


_PACKAGES = _rows("Packages")
#: What a package may import when it is imported itself. What is not listed may import anything.
_ARROWS = {_names(row[0])[0]: set(row[2].split()) for row in _PACKAGES if row[2]}
#: Imports that point upwards, inside functions.
_LATE = {(_names(row[0])[0], target) for row in _rows("Imports that point upwards")
         for target in _names(row[1])}


@cache
def _imports() -> list[Import]:
    """All of the package: read once in a process that runs these tests, and in no other."""
    return imports(read())


def _layer(arrow: Import) -> str:
    return arrow.file.split("/")[0]


def _target(arrow: Import) -> list[str]:
    """The names that lead to the module within gtape; none where it is of another package."""
    package, *inside = arrow.module.split(".")
    return (inside or ["gtape"]) if package == "gtape" else []


def _listed(arrows: Iterable[Import]) -> str:
    return "\n".join(f"gtape/{a.file}:{a.line} imports {a.module}" for a in arrows)


@pytest.mark.parametrize("layer", sorted(_ARROWS))
def test_arrows_point_down(layer: str) -> None:
    wrong = [arrow for arrow in _imports() if _layer(arrow) == layer and not arrow.late
             and _target(arrow) and _target(arrow)[0] not in _ARROWS[layer]]
    assert not wrong, _listed(wrong)


@pytest.mark.parametrize("layer", sorted(_ARROWS))
def test_late_imports_upwards_are_the_documented_ones(layer: str) -> None:
    wrong = []
    for arrow in _imports():
        target = _target(arrow)
        if _layer(arrow) != layer or not arrow.late or not target:
            continue
        allowed = target[0] in _ARROWS[layer] or any(
            (layer, ".".join(target[:n])) in _LATE for n in (1, 2))
        if not allowed:
            wrong.append(arrow)
    assert not wrong, _listed(wrong)


def test_only_the_demo_the_cli_and_late_imports_use_other_packages() -> None:
    core = {"gtape", "numpy", "__future__", *sys.stdlib_module_names}
    wrong = [arrow for arrow in _imports()
             if not arrow.late and _layer(arrow) not in ("demo", "cli")
             and arrow.module.split(".")[0] not in core]
    assert not wrong, _listed(wrong)


def test_numerics_never_imports_anything_but_numpy() -> None:
    allowed = {"numpy", "__future__", *sys.stdlib_module_names}
    wrong = [arrow for arrow in _imports() if _layer(arrow) == "numerics"
             and arrow.module.split(".")[0] not in allowed
             and not arrow.module.startswith("gtape.numerics")]
    assert not wrong, _listed(wrong)


def test_nothing_unpickles() -> None:
    wrong = [arrow for arrow in _imports()
             if arrow.module.split(".")[0] in ("pickle", "marshal", "shelve")]
    assert not wrong, _listed(wrong)


def test_importing_gtape_imports_neither_ops_nor_devices_nor_keras() -> None:
    wrong = [arrow for arrow in _imports() if arrow.file == "__init__.py" and not arrow.late
             and arrow.module not in ("__future__", "gtape._names", "gtape._version")]
    assert not wrong, _listed(wrong)


def test_the_document_names_every_package_and_no_file_that_is_gone() -> None:
    packages = {init.parent.name for init in (ROOT / "gtape").glob("*/__init__.py")}
    assert {name for row in _PACKAGES for name in _names(row[0])} == packages
    files = re.findall(r"`((?:\w+/)+\w+\.\w+)`", _DOCUMENT)
    assert files
    assert [f for f in files if not (ROOT / "gtape" / f).exists() and not (ROOT / f).exists()] == []
