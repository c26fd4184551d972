"""The text of the kernels, installed with gtape or beside it in a checkout."""

from pathlib import Path

import pytest

from gtape.core.errors import KernelError
from gtape.devices import kernel_source
from gtape.devices.kernel_source import read_shipped

CHECKOUT = Path(__file__).resolve().parents[2] / "kernels"


@pytest.fixture
def not_installed(monkeypatch):
    def files(package):
        raise ModuleNotFoundError(f"No module named {package!r}")

    monkeypatch.setattr(kernel_source, "files", files)
    read_shipped.cache_clear()
    yield
    read_shipped.cache_clear()


def test_a_checkout_that_is_not_installed_has_its_kernels(not_installed):
    assert read_shipped("cpu_program.h") == (CHECKOUT / "cpu_program.h").read_text("utf-8")


def test_without_kernels_the_error_says_where_they_belong(not_installed, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_source, "_CHECKOUT", tmp_path / "kernels")
    with pytest.raises(KernelError, match="install gtape with pip"):
        read_shipped("cpu_program.h")
