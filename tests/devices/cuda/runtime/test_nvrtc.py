"""NVRTC: found, called, and its complaints shown at the lines of the shipped text."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices import kernel_source
from gtape.devices.cuda.runtime import nvrtc, toolkit
from gtape.devices.kernel_source import expand

SAXPY = """\
#include "gtape.cuh"

template <typename T>
__global__ void saxpy(const T* x, T* y, double a, long long n) {
    long long i = grid_index();
    if (i < n) y[i] = T(a) * x[i] + y[i] / x[i];
}
"""


@pytest.fixture(scope="module")
def compiler() -> nvrtc.Nvrtc:
    try:
        return nvrtc.find()
    except UnavailableError as error:
        pytest.skip(str(error))


def test_it_names_its_version_and_the_architectures_it_knows(compiler: nvrtc.Nvrtc) -> None:
    assert re.fullmatch(r"1\d\.\d+", compiler.version)
    assert {75, 80, 90} <= set(compiler.architectures)
    assert compiler.architectures == tuple(sorted(compiler.architectures))
    assert nvrtc.find() is compiler


def test_machine_code_for_a_real_architecture_and_ptx_for_a_virtual_one(
        compiler: nvrtc.Nvrtc) -> None:
    entries = ["saxpy<float>", "saxpy<half>"]
    machine = compiler.compile(expand(SAXPY, "saxpy.cu"), entries, "sm_90")
    assert machine.image.startswith(b"\x7fELF")
    assert machine.names.keys() == set(entries)
    assert all(name.encode() in machine.image for name in machine.names.values())
    assert ".target sm_90" in machine.ptx
    virtual = compiler.compile(expand(SAXPY, "saxpy.cu"), entries, "compute_90")
    assert virtual.image.rstrip(b"\0").decode() == virtual.ptx
    assert virtual.names == machine.names


def test_arithmetic_is_exact_to_the_last_bit_but_for_fused_multiply_and_add(
        compiler: nvrtc.Nvrtc) -> None:
    ptx = compiler.compile(expand(SAXPY, "saxpy.cu"), ["saxpy<float>"], "compute_80").ptx
    assert ".ftz" not in ptx
    assert "div.rn.f32" in ptx and "fma.rn.f32" in ptx


def test_the_log_tells_registers_only_on_request(compiler: nvrtc.Nvrtc) -> None:
    text = expand(SAXPY, "saxpy.cu")
    assert "registers" not in compiler.compile(text, ["saxpy<float>"], "sm_80").log
    log = compiler.compile(text, ["saxpy<float>"], "sm_80", options=[nvrtc.VERBOSE]).log
    assert "registers" in log and "spill" in log


def test_a_syntax_error_is_shown_at_its_line_of_the_shipped_file(compiler: nvrtc.Nvrtc) -> None:
    text = expand(SAXPY.replace("grid_index()", "grid_idx()"), "saxpy.cu")
    with pytest.raises(KernelError) as caught:
        compiler.compile(text, ["saxpy<float>"], "sm_80")
    said = str(caught.value)
    assert f"NVRTC {compiler.version} cannot compile saxpy<float> for sm_80" in said
    assert "saxpy.cu:5\n" in said
    assert ">    5 |     long long i = grid_idx();" in said
    assert "     6 |     if (i < n)" in said
    assert 'identifier "grid_idx" is undefined' in said


def test_an_unknown_instance_is_named(compiler: nvrtc.Nvrtc) -> None:
    with pytest.raises(KernelError, match="hlf"):
        compiler.compile(expand(SAXPY, "saxpy.cu"), ["saxpy<float>", "saxpy<hlf>"], "sm_80")


def test_an_unknown_architecture_is_answered_with_the_known_ones(compiler: nvrtc.Nvrtc) -> None:
    with pytest.raises(KernelError, match=r"does not know sm_61; it compiles for sm_\d+, .*sm_90"):
        compiler.compile(expand(SAXPY, "saxpy.cu"), ["saxpy<float>"], "sm_61")


def test_an_unknown_option_is_an_error(compiler: nvrtc.Nvrtc) -> None:
    with pytest.raises(KernelError, match="--nonsense"):
        compiler.compile(SAXPY, [], "sm_80", options=["--nonsense"])


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "load", lambda *args, **kwargs: None)
    with pytest.raises(UnavailableError, match=r'CUDA 13 or 12.*pip install "gtape\[cuda13\]"'):
        nvrtc.find.__wrapped__()
    with pytest.raises(UnavailableError, match="pip install nvidia-cuda-nvrtc-cu12"):
        nvrtc.find.__wrapped__(12)


def test_a_file_that_is_no_library_is_passed_over(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "lib" / toolkit._file_name("nonsense", 13)
    file.parent.mkdir()
    file.write_bytes(b"no library")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert file.parent in toolkit.folders("cuda_nvrtc")
    assert toolkit.load("nonsense", "cuda_nvrtc") is None


def test_wheels_come_before_the_toolkit_and_the_newest_version_first(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = []
    for root, major in (("wheels/nvidia/cu13", 13), ("wheels/nvidia/cuda_nvrtc", 12), ("cuda", 12)):
        file = tmp_path / root / "lib" / toolkit._file_name("nvrtc", major)
        file.parent.mkdir(parents=True)
        file.touch()
    (tmp_path / "wheels/nvidia/cu13/lib" / "libnvrtc-builtins.so.13.0").touch()
    monkeypatch.setattr(toolkit.sys, "platform", "linux")
    monkeypatch.setattr(toolkit.importlib.util, "find_spec", lambda name: type(
        "Spec", (), {"submodule_search_locations": [str(tmp_path / "wheels/nvidia")]}))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda"))
    monkeypatch.setattr(toolkit, "_opened",
                        lambda file, mode=0: opened.append(Path(file).name) or ctypes.CDLL(None))
    for majors, folder in (((13, 12), "cu13"), ((12,), "cuda_nvrtc")):
        found = toolkit.load("nvrtc", "cuda_nvrtc", majors, companion="nvrtc-builtins")
        assert found is not None and Path(found[1]).parts[-3] == folder
    assert opened == ["libnvrtc-builtins.so.13.0", Path(toolkit._file_name("nvrtc", 13)).name,
                      Path(toolkit._file_name("nvrtc", 12)).name]


def test_lines_are_numbered_as_line_directives_say() -> None:
    text = 'a\n#line 1 "one.cu"\nb\n#line 1 "two.cuh"\nc\nd\n#line 3 "one.cu"\ne\n'
    assert list(kernel_source.located(text, "kernel.cu")) == [
        ("kernel.cu", 1, "a"), ("one.cu", 1, "b"), ("two.cuh", 1, "c"), ("two.cuh", 2, "d"),
        ("one.cu", 3, "e")]
    assert kernel_source.excerpt(text, "two.cuh", 2) == "     1 | c\n>    2 | d"
    assert kernel_source.excerpt(text, "two.cuh", 9) == ""
    assert kernel_source.complaint(text, "kernel.cu(9): error: no\none.cu(3): error: yes") == (
        "one.cu:3\n     1 | b\n>    3 | e")
    assert kernel_source.complaint(text, "nvrtc: error: nothing known") == ""
