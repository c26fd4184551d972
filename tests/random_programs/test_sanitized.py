"""Programs with AddressSanitizer and UBSan: what is planted is found, and what is right passes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gtape.core.errors import KernelError
from tests.random_programs import sanitized

pytestmark = [pytest.mark.native, pytest.mark.slow]
_COPY = "for (long i = 0; i < n; i++) y[i] = x[i]; "


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    try:
        return sanitized.environment()
    except KernelError as error:
        pytest.skip(str(error))


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=sanitized._ROOT, text=True,
                          env=environment, capture_output=True, timeout=240, check=False)


@pytest.mark.parametrize("text, place, message", [
    (_COPY + "y[n] = 1;", "arena", "use-after-poison"),
    (_COPY + "y[n] = 1;", "result", "use-after-poison"),
    (_COPY + "y[n] = 1;", "cell", "use-after-poison"),
    (_COPY + "y[0] = y[-1];", "arena", "use-after-poison"),
    (_COPY + "y[0] = x[n];", "arena", "use-after-poison"),
    (_COPY + "y[0] = x[n];", "argument", "use-after-poison"),
    (_COPY + "y[0] = 1 << (n + 30);", "arena", "shift exponent 35 is too large"),
    (_COPY + "y[0] = (int)n * 1000000000;", "arena", "signed integer overflow"),
    (_COPY + "y[0] = *(float*)((char*)x + 1 + n % 2);", "arena", "misaligned address"),
])
def test_a_planted_defect_is_found(environment: dict[str, str], text: str, place: str,
                                   message: str) -> None:
    done = run(environment, "tests.random_programs.planted", text, place)
    assert done.returncode and message in done.stderr, done.stderr[-3000:]


def test_what_is_right_passes(environment: dict[str, str]) -> None:
    done = run(environment, "tests.random_programs.planted", _COPY, "arena")
    assert not done.returncode and not done.stderr, done.stderr[-3000:]
    assert done.stdout.strip() == "[0.0, 6.0, 12.0, 18.0, 24.0]"
