"""A pytest plugin under which Keras' own tests run on gtape: `-p tests.keras.keras_suite`.

Keras' wheel brings its tests, but not the `conftest` that some of them import a marker from.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

import pytest

from gtape.engine import stand_in

os.environ["KERAS_BACKEND"] = "tensorflow"
stand_in.install()


def _skip_if_backend(given: str, reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(given == "tensorflow", reason=reason)


_conftest = ModuleType("conftest")
_conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
sys.modules.setdefault("conftest", _conftest)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: Keras trains on it")
