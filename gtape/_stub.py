"""Writes stubs, the static faces of namespaces that import at first use: `python -m gtape._stub`.

`__init__.pyi` is that of the root; modules with a table of names, as `math.py`, have one each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from gtape import _names

_HERE = Path(__file__).parent
_HEAD = '"""Names of {}; written by `python -m gtape._stub`."""'
#: What `gtape.keras` is when it is imported: the namespace that Keras ships for TensorFlow.
_KERAS = "keras._tf_keras"
_WIDTH = 100

Names = dict[str, tuple[str, str]]


def _order(entry: tuple[str, tuple[str, str]]) -> tuple[str, bool, str]:
    """By module and name as ruff sorts: classes first, and numbers in a name by their size."""
    module, attribute = entry[1]
    spelled = f"{attribute} {_spelled(entry[0], attribute)}"
    return (module, not attribute[0].isupper(),
            re.sub(r"\d+", lambda digits: digits[0].zfill(4), spelled.lower()))


def _spelled(name: str, attribute: str) -> str:
    """What the stub imports the attribute as."""
    return name if name == attribute else f"_{name}"


def _imported(module: str, name: str, renamed: str) -> str:
    """The import of one name, wrapped as ruff does."""
    line = f"from {module} import {name} as {renamed}"
    return line if len(line) <= _WIDTH else (f"from {module} import (\n    {name} as {renamed},\n)")


def _lines(names: Names) -> tuple[list[str], list[str]]:
    """The imports, and below them the names that a module spells differently."""
    lines, renamed = [], []
    for name, (module, attribute) in sorted(names.items(), key=_order):
        # Type checkers cannot follow a namespace that is made when it is imported.
        if module == "gtape.keras":
            module = f"{_KERAS}.keras"
        lines.append(_imported(module, attribute, _spelled(name, attribute)))
        if name != attribute:
            renamed.append(f"{name} = _{name}")
    return lines, renamed


def root() -> str:
    """The stub of the root."""
    modules = [f"from {_KERAS if name == 'keras' else 'gtape'} import {name} as {name}"
               for name in sorted(_names.MODULES)]
    lines, renamed = _lines(_names.ROOT)
    # Third-party imports stand apart, as ruff sorts them.
    first = [line for line in modules + lines if line.startswith(f"from {_KERAS}")]
    rest = [line for line in modules + lines if line not in first]
    return "\n".join([_HEAD.format("the root namespace"), "", *first, "", *rest, "", *renamed, "",
                      "__version__: str", "newaxis: None", ""])


def stubs() -> Iterator[tuple[Path, str]]:
    """Every stub: where it lies, and its text."""
    yield _HERE / "__init__.pyi", root()
    for file in sorted([*_HERE.glob("*.py"), *_HERE.glob("*/*.py")]):
        if re.search(r"^__getattr__.* = _attach", file.read_text("utf-8"), re.MULTILINE):
            name = ".".join(("gtape", *file.relative_to(_HERE).with_suffix("").parts))
            name = name.removesuffix(".__init__")
            lines, renamed = _lines(_names.parsed(vars(import_module(name))["_TABLE"]))
            below = ["", *renamed] if renamed else []
            yield file.with_suffix(".pyi"), "\n".join([_HEAD.format(name), "", *lines, *below, ""])


if __name__ == "__main__":
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")
