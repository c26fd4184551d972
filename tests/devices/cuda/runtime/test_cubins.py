"""The cache of compiled kernels: keys, damage, unwritable folders, several processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gtape.core.errors import UnavailableError
from gtape.devices import cache
from gtape.devices.cuda.runtime import cubins, nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from tests import forking

TEXT = "__global__ void nothing(float* x, long long n) {}\n"
STRANGER = 4242


class Counting:
    """A compiler that needs no library and counts what it compiles."""

    def __init__(self, version: str = "13.0") -> None:
        self.version = version
        self.compiled = 0

    def compile(self, text: str, entries: list[str], arch: str) -> nvrtc.Compiled:
        self.compiled += 1
        image = b"\n\0image of " + arch.encode() + b"\n" * 9
        return nvrtc.Compiled(image, {entry: f"_Z{entry}" for entry in entries}, "", "")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    cubins.forget()
    yield tmp_path / cubins.KIND
    cubins.forget()


@pytest.fixture
def kernel() -> Kernel:
    return Kernel(TEXT, "nothing")


def test_a_kernel_is_compiled_once_for_memory_and_disk(kernel: Kernel, folder: Path) -> None:
    compiler = Counting()
    first = cubins.cubin(kernel, "sm_90", compiler)
    assert first.name == "_Znothing" and b"sm_90" in first.image
    assert cubins.cubin(kernel, "sm_90", compiler) == first
    assert len(list(folder.iterdir())) == 1
    cubins.forget()
    assert cubins.cubin(kernel, "sm_90", compiler) == first
    assert compiler.compiled == 1


def test_what_the_image_depends_on_has_files_of_its_own(kernel: Kernel) -> None:
    compiler = Counting()
    cubins.cubin(kernel, "sm_90", compiler)
    cubins.cubin(kernel, "sm_80", compiler)
    cubins.cubin(Kernel(TEXT + "\n", "nothing"), "sm_90", compiler)
    newer = Counting("13.1")
    cubins.cubin(kernel, "sm_90", newer)
    assert (compiler.compiled, newer.compiled) == (3, 1)


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:10], lambda data: data[:40], lambda data: data[:-1],
    lambda data: data[:-5] + b"?" + data[-4:], lambda data: data + b"more",
    lambda data: b"gtape cubin 0" + data[13:], lambda data: b"\xff" * 200,
    lambda data: data.replace(b"_Z", b"_Y")])
def test_a_damaged_file_is_made_again(damage: object, kernel: Kernel, folder: Path) -> None:
    compiler = Counting()
    whole = cubins.cubin(kernel, "sm_90", compiler)
    (file,) = folder.iterdir()
    kept = file.read_bytes()
    file.write_bytes(damage(kept))
    cubins.forget()
    assert cubins.cubin(kernel, "sm_90", compiler) == whole
    assert compiler.compiled == 2
    assert file.read_bytes() == kept


def test_a_folder_that_cannot_be_made_is_no_error(
        kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    compiler = Counting()
    assert cubins.cubin(kernel, "sm_90", compiler).name == "_Znothing"
    cubins.cubin(kernel, "sm_90", compiler)
    assert compiler.compiled == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no rights of POSIX")
def test_a_read_only_folder_is_no_error(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> bool:
        if os.geteuid() == 0:  # root may write there
            os.setuid(STRANGER)
        return cubins.cubin(kernel, "sm_90", Counting()).name == "_Znothing"

    with tempfile.TemporaryDirectory(dir="/tmp") as public:
        folder = Path(public, cubins.KIND)
        folder.mkdir()
        for place in (public, folder):
            os.chmod(place, 0o555)
        monkeypatch.setenv(cache.VARIABLE, public)
        assert forking.child(compiled)
        assert not list(folder.iterdir())
        os.chmod(public, 0o755)


def test_a_full_disk_is_no_error(
        kernel: Kernel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    assert cubins.cubin(kernel, "sm_90", Counting()).name == "_Znothing"
    assert not list(folder.iterdir())


def test_processes_may_write_and_read_the_same_file_at_once(folder: Path) -> None:
    program = """
import sys
from gtape.devices import cache
from gtape.devices.cuda.runtime import cubins
image = bytes([int(sys.argv[1])]) * 200_000
for _ in range(100):
    cache.write(cubins.KIND, "same", cubins.packed(cubins.Cubin(image, "name")))
    found = cubins.unpacked(cache.read(cubins.KIND, "same"))
    assert found is not None and len(set(found.image)) == 1 and len(found.image) == len(image)
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(n)]) for n in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [file.name for file in folder.iterdir()] == ["same"]


def test_processes_may_compile_the_same_kernel_at_once(folder: Path) -> None:
    try:
        nvrtc.find()
    except UnavailableError as error:
        pytest.skip(str(error))
    program = f"""
from gtape.devices.cuda.runtime import cubins
from gtape.devices.cuda.runtime.kernel import Kernel
print(cubins.cubin(Kernel({TEXT!r}, "nothing"), "sm_90").image[:4])
"""
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
               for _ in range(3)]
    said = [process.communicate()[0].strip() for process in running]
    assert said == [b"b'\\x7fELF'"] * 3
    assert len(list(folder.iterdir())) == 1
