"""Which tests are collected: without a GPU, and without packages that some of them need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
#: Packages that tests use, and that neither gtape nor Keras needs.
_EXTRAS = ("PIL", "autograd", "cupy", "mpmath", "pandas", "pynvml", "safetensors", "scipy",
           "sklearn", "tensorboard")
#: Tests for every device there is, and one for a GPU.
_BOTH = "tests/files/test_file_devices.py"
_GPU = "tests/devices/cuda/test_gpu.py::test_new_tensors_go_there"
_OF_GPUS = ("GTAPE_REQUIRE_GPU", "GTAPE_EMULATED_GPU")


def run_pytest(*arguments: str, without: Sequence[str] = ("cupy",),
               **environment: str) -> tuple[int, str]:
    """The status and the output of a pytest that finds no GPU, and none of the packages `without`.
    """
    program = (f"import sys; sys.modules.update(dict.fromkeys({list(without)})); import pytest; "
               "sys.exit(pytest.main(sys.argv[1:]))")
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_GPUS}
    done = subprocess.run(
        [sys.executable, "-c", program, "-p", "no:cacheprovider", *arguments], text=True,
        cwd=_TESTS.parent, env=inherited | environment, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_files_whose_packages_are_missing_are_skipped() -> None:
    files = [str(path) for path in _TESTS.rglob("test_*.py") if re.search(
        r"^(\w+ = )?pytest\.importorskip\(\"(?!resource)", path.read_text("utf-8"), re.MULTILINE)]
    status, said = run_pytest(*files, without=_EXTRAS)
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED and f"{len(files)} skipped" in said, said


def test_packages_that_may_be_missing_are_not_simply_imported() -> None:
    """`pytest.importorskip` instead: where one is missing, collecting would end in an error."""
    statement = re.compile(rf"^(import|from) ({'|'.join(_EXTRAS)})\b.*", re.MULTILINE)
    found = {str(path.relative_to(_TESTS)): match[0] for path in _TESTS.rglob("*.py")
             for match in statement.finditer(path.read_text("utf-8"))}
    assert not found


def test_tests_of_a_gpu_are_left_out_where_there_is_none() -> None:
    status, said = run_pytest("--collect-only", _BOTH, _GPU)
    assert status == pytest.ExitCode.OK and "[CPU:0]" in said
    assert "[GPU:0]" not in said and "::test_new_tensors_go_there" not in said
    assert "tests marked gpu were left out; no usable GPU: CuPy" in said


def test_tests_of_a_gpu_fail_where_one_must_be_there() -> None:
    status, said = run_pytest(_GPU, GTAPE_REQUIRE_GPU="1")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "GTAPE_REQUIRE_GPU=1, but there is no usable GPU: CuPy" in said


def test_tests_of_a_gpu_are_collected_for_an_emulated_one() -> None:
    status, said = run_pytest("--collect-only", _BOTH, GTAPE_EMULATED_GPU="1")
    assert status == pytest.ExitCode.OK and said.count("[CPU:0]") == said.count("[GPU:0]") > 0
