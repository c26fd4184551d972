"""The binding of cuBLASLt: held against NVIDIA's header and the real library where they are."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from gtape.core.errors import InternalError, UnavailableError
from gtape.devices.cuda.gemm import blaslt
from gtape.devices.cuda.gemm.blaslt import (
    MATMUL_DESC,
    MATMUL_PREF,
    MATRIX_LAYOUT,
    Compute,
    DataType,
    Epilogue,
    HeuristicResult,
    Operation,
    ReductionScheme,
    Status,
)
from gtape.devices.cuda.runtime import toolkit
from tests.fakes import fake_blaslt as fake

_PREFIXES = {Status: "CUBLAS_STATUS_", DataType: "CUDA_", Operation: "CUBLAS_OP_",
             ReductionScheme: "CUBLASLT_REDUCTION_SCHEME_", Epilogue: "CUBLASLT_EPILOGUE_"}
_ATTRIBUTES = {"CUBLASLT_MATMUL_DESC_": MATMUL_DESC, "CUBLASLT_MATRIX_LAYOUT_": MATRIX_LAYOUT,
               "CUBLASLT_MATMUL_PREF_": MATMUL_PREF}
_COMPUTE = {Compute.F32: "32F", Compute.F64: "64F", Compute.F32_FAST_TF32: "32F_FAST_TF32"}
_SIZES = """
template <typename... A> constexpr bool sizes(cublasStatus_t (*)(A...),
                                              std::initializer_list<size_t> wanted) {
    size_t found[] = {sizeof(A)...};
    if (sizeof...(A) != wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); i++)
        if (found[i] != wanted.begin()[i]) return false;
    return true;
}
"""


def _include_folders() -> list[Path]:
    return [p for p in {f.parent / "include" for f in toolkit.folders("cublas")} if p.is_dir()]


def _assertions() -> list[str]:
    made = [f"{prefix}{member.name} == {member.value}"
            for kind, prefix in _PREFIXES.items() for member in kind]
    made += [f"CUBLAS_COMPUTE_{name} == {member.value}" for member, name in _COMPUTE.items()]
    made += [f"{prefix}{name} == {number}" for prefix, table in _ATTRIBUTES.items()
             for name, (number, _) in table.items()]
    result = "cublasLtMatmulHeuristicResult_t"
    made.append(f"sizeof({result}) == {ctypes.sizeof(HeuristicResult)}")
    for mine, theirs in {"algo": "algo", "workspace": "workspaceSize", "state": "state",
                         "waves": "wavesCount", "reserved": "reserved"}.items():
        made.append(f"offsetof({result}, {theirs}) == {getattr(HeuristicResult, mine).offset}")
    pointer = ctypes.sizeof(ctypes.c_void_p)
    signatures = {**{name: [ctypes.sizeof(t) for t in types]
                     for name, types in blaslt._SIGNATURES.items()},
                  "Matmul": [pointer] * 14 + [ctypes.sizeof(ctypes.c_size_t), pointer]}
    made += [f"sizes(cublasLt{name}, {{{', '.join(map(str, found))}}})"
             for name, found in signatures.items()]
    return made


@pytest.mark.skipif(not any((p / "cublasLt.h").is_file() for p in _include_folders()),
                    reason="cublasLt.h is not installed: pip install nvidia-cublas")
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_numbers_and_signatures_are_those_of_the_header(tmp_path: Path) -> None:
    source = tmp_path / "header.cpp"
    source.write_text("#include <cstddef>\n#include <initializer_list>\n#include <cublasLt.h>\n"
                      + _SIZES + "".join(f"static_assert({a});\n" for a in _assertions()))
    folders = [f"-I{p}" for p in _include_folders()]
    made = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", *folders, str(source)],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:3000]


def _real() -> blaslt.BlasLt | None:
    try:
        return blaslt.find(13)
    except UnavailableError:
        return None


def test_the_real_library_takes_every_attribute() -> None:
    lt = _real()
    if lt is None:
        pytest.skip("cuBLASLt is not installed: pip install nvidia-cublas")
    assert lt.version >= 110000
    desc = lt.matmul_desc(Compute.F32, DataType.R_32F)
    for made in (desc, lt.matrix_layout(DataType.R_16BF, 2**33, 5, 2**33), lt.preference()):
        for name in made._attributes:
            made.set(**{name: 16})
    for compute in Compute:
        lt.matmul_desc(compute, DataType.R_32F)
    for status in Status:
        assert lt._library.cublasLtGetStatusName(status) == b"CUBLAS_STATUS_" + status.name.encode()
    # It tells sizes apart, so those above are right.
    desc._attributes = {"EPILOGUE": (MATMUL_DESC["EPILOGUE"][0], ctypes.c_uint64)}
    with pytest.raises(InternalError, match="INVALID_VALUE"):
        desc.set(EPILOGUE=Epilogue.BIAS)


def test_the_stand_in_is_as_strict() -> None:
    lt = fake.library()
    desc = lt.matmul_desc(Compute.F32, DataType.R_32F)
    for attribute in ((7, ctypes.c_uint64), (99, ctypes.c_int32), (3, ctypes.c_int64)):
        desc._attributes = {"WRONG": attribute}
        with pytest.raises(InternalError, match="INVALID_VALUE"):
            desc.set(WRONG=1)


def test_the_library_is_looked_for_in_the_toolkit(tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lib64"
    folder.mkdir()
    shutil.copy(fake.library().path, folder / "libcublasLt.so.12")
    opened = toolkit._opened
    monkeypatch.setattr(toolkit, "folders", lambda wheel: iter([folder]))
    monkeypatch.setattr(toolkit, "_opened", lambda file: opened(file) if "/" in file else None)
    assert blaslt.find(13).path == str(folder / "libcublasLt.so.12")
    shutil.copy(fake.library().path, folder / "libcublasLt.so.13")
    assert blaslt.find(13).path == str(folder / "libcublasLt.so.13")
    assert blaslt.find(12).path == str(folder / "libcublasLt.so.12")


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "load", lambda *args: None)
    with pytest.raises(UnavailableError, match="pip install"):
        blaslt.find(13)
