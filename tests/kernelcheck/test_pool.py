"""Kernels compiled before their checks run on a GPU: each is then found in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices import cache
from gtape.devices.cuda.runtime import cubins, nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.pool import compile_ahead

_PLAIN = "".join(f"__global__ void {name}(float* x, long long n) {{}}\n" for name in "ab")
_TEMPLATE = "template <typename T> __global__ void t(T* x, long long n) {}\n"
KERNELS = [Kernel(_PLAIN, "a"), Kernel(_PLAIN, "b"), Kernel(_TEMPLATE, "t<float>"),
           Kernel(_TEMPLATE, "t<double>")]
CUPY = SimpleNamespace(cuda=SimpleNamespace(
    runtime=SimpleNamespace(runtimeGetVersion=lambda: 13020),
    Device=lambda index: SimpleNamespace(compute_capability="90")))


class Compiler:
    """An NVRTC that writes down what it is asked for."""

    version, architectures = "13.0", (75, 90)

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.broken = ""

    def compile(self, text: str, entries: Sequence[str], arch: str) -> nvrtc.Compiled:
        self.asked.append((arch, *entries))
        if self.broken in entries:
            raise KernelError("planted")
        return nvrtc.Compiled(b"image", {entry: f"_Z{entry}" for entry in entries}, "", "")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compiler]:
    made = Compiler()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(nvrtc, "find", lambda major: made)
    cubins.forget()
    yield made
    cubins.forget()


def test_each_kernel_is_in_the_cache_and_programs_without_templates_are_compiled_once(
        compiler: Compiler) -> None:
    compile_ahead(KERNELS, CUPY, 1)
    assert sorted(compiler.asked) == [
        ("sm_90", "a", "b"), ("sm_90", "t<double>"), ("sm_90", "t<float>")]
    assert [cubins.cubin(k, "sm_90", compiler).name for k in KERNELS] == [
        "_Za", "_Zb", "_Zt<float>", "_Zt<double>"]
    compile_ahead(KERNELS, CUPY, 1)
    assert len(compiler.asked) == 3


def test_what_does_not_compile_is_left_to_its_check(compiler: Compiler) -> None:
    compiler.broken = "t<float>"
    compile_ahead(KERNELS, CUPY, 1)
    with pytest.raises(KernelError, match="planted"):
        cubins.cubin(KERNELS[2], "sm_90", compiler)
    assert cubins.cubin(KERNELS[3], "sm_90", compiler).image == b"image"


def test_without_a_compiler_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(major: int) -> nvrtc.Nvrtc:
        raise UnavailableError("none")

    monkeypatch.setattr(nvrtc, "find", missing)
    compile_ahead(KERNELS, CUPY, 1)
