"""A pytest plugin under which Keras' own tests run on gtape; `python -m tests.keras` uses it.

Keras' wheel brings its tests, but not the `conftest` that some of them import a marker from.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from gtape.cli import stand_in

os.environ["KERAS_BACKEND"] = "tensorflow"
stand_in.install()

#: Tests that do not pass, by reason: what docs/keras.md lists.
KNOWN = Path(__file__).with_name("suite_known.txt")
_IMPORTS = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


def _skip_if_backend(given: str, reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(given == "tensorflow", reason=reason)


_conftest = ModuleType("conftest")
_conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
sys.modules.setdefault("conftest", _conftest)


def known() -> dict[str, str]:
    """The reason by the test or by its file: headings "# reason" with these below them."""
    reasons, reason = {}, ""
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            reasons[line] = reason
    return reasons


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: Keras trains on it")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Files that import a package that is not installed here, or are of another backend."""
    if not collection_path.name.endswith("_test.py"):
        return None
    if any(part in collection_path.parts for part in ("jax", "torch", "openvino")):
        return True
    wanted = set(_IMPORTS.findall(collection_path.read_text(encoding="utf-8")))
    return True if any(_is_missing(name) for name in wanted) else None


def _is_missing(package: str) -> bool:
    return package not in sys.modules and find_spec(package) is None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = known()
    for item in items:
        reason = reasons.get(item.nodeid) or reasons.get(item.nodeid.partition("::")[0])
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=item.nodeid in reasons))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
        item: pytest.Item,
        call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that imports a package that is not installed here is skipped."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if (isinstance(error, ModuleNotFoundError) and error.name
            and _is_missing(error.name.split(".")[0])):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"Skipped: needs {error.name}")
    return report
