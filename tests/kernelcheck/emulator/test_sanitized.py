"""Kernels with AddressSanitizer and UBSan: what they find, and that fibers do not upset them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gtape.core.errors import KernelError
from gtape.kernelcheck.emulator.build import library, sanitized_environment

pytestmark = pytest.mark.slow


def run(entry: str, at: int) -> subprocess.CompletedProcess[str]:
    try:
        environment = sanitized_environment()
    except KernelError as error:
        pytest.skip(str(error))
    script = Path(__file__).with_name("sanitized.py")
    return subprocess.run([sys.executable, str(script), entry, str(at)], capture_output=True,
                          text=True, env=environment, timeout=200, check=False)


def test_a_correct_kernel(emulator: None) -> None:
    done = run("sum", 100)
    assert done.stdout == "[100.0, 100.0, 100.0]\n" * 3, done.stderr
    assert done.returncode == 0 and not done.stderr


@pytest.mark.parametrize("entry, at, message", [
    ("load", 100, "READ of size 4"), ("load", -1, "READ of size 4"),
    ("store", 10, "WRITE of size 4"), ("shared", 1, "out of bounds for type 'float [32]'"),
    ("overflow", 3000, "signed integer overflow"), ("misaligned", 1, "misaligned address")])
def test_a_planted_bug(emulator: None, entry: str, at: int, message: str) -> None:
    done = run(entry, at)
    assert done.returncode != 0 and message in done.stderr and "sanitized.cu:" in done.stderr


def test_a_process_without_the_sanitizers(emulator: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    with pytest.raises(KernelError, match="python -m gtape kernels --run --sanitize"):
        library("__global__ void f(float* x) {}", ("f",), sanitize=True)
