"""What is read from compiled kernels: the checker of kernels is itself checked."""

from __future__ import annotations

import pytest

from gtape.core.errors import InternalError, UnavailableError
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck import ptxas_report
from gtape.kernelcheck.ptxas_report import reached

TEXT = expand("""\
#include "gtape.cuh"

template <typename T, int V>
__global__ void wide(const T* __restrict__ x, T* y, long long n) {
    long long i = grid_index();
    if (i < n) reinterpret_cast<Vec<T, V>*>(y)[i] = reinterpret_cast<const Vec<T, V>*>(x)[i];
}

template <typename T, int V>
__global__ void narrow(const T* x, T* y, long long n) {
    for (long long i = grid_index(); i < n; i += V) y[i] = x[i];
}

__global__ void literal(float** x, float* y, long long n) {
    using Wide = Vec<float, 4>;
    reinterpret_cast<Wide*>(y)[grid_index()] = reinterpret_cast<Wide*>(x[n])[grid_index()];
}

template <typename T>
__global__ void by_width(const T* x, T* y, long long n) {
    if (Width<T>::value < n) y[grid_index()] = x[grid_index()];
}

template <typename T> struct Slice {
    static constexpr int size = Width<T>::value;  // DEVICE void alone() { is no definition }
};
template <typename T> DEVICE void through(const T* x, T* y) { y[0] = x[Slice<T>::size]; }

template <typename T>
__global__ void __launch_bounds__(256) calls(const T* x, T* y, long long n) {
    if (n) through(x, y);
}

template <typename T>
__global__ void alone(const T* x, T* y, long long n) { y[n] = x[n]; }

template <int KEPT>
__global__ void __launch_bounds__(1024) keeps(const float* x, float* y, long long n) {
    float kept[KEPT];
#pragma unroll
    for (int k = 0; k < KEPT; k++) kept[k] = x[k * n + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEPT; k++)
#pragma unroll
        for (int j = 0; j < k; j++) kept[k] += kept[j] * kept[k];
#pragma unroll
    for (int k = 0; k < KEPT; k++) y[k * n + threadIdx.x] = kept[k];
}
""", "proof.cu")
ENTRIES = ("wide<float, 4>", "wide<half, 8>", "wide<signed char, 16>", "wide<double, 2>",
           "wide<float, 1>", "narrow<float, 4>", "narrow<float, 1>", "literal", "by_width<float>",
           "keeps<4>", "keeps<120>")


@pytest.fixture(scope="module", params=["sm_75", "sm_90"])
def proofs(request: pytest.FixtureRequest) -> dict[str, ptxas_report.Proof]:
    try:
        return ptxas_report.prove(TEXT, ENTRIES, request.param, nvrtc.find())
    except UnavailableError as error:
        pytest.skip(str(error))


def _problems(proofs: dict[str, ptxas_report.Proof], entry: str) -> list[str]:
    return ptxas_report.problems(Kernel(TEXT, entry), proofs[entry])


def test_kernels_that_move_16_bytes_pass(proofs: dict[str, ptxas_report.Proof]) -> None:
    for entry in ENTRIES[:4]:
        assert (proofs[entry].wide_loads, proofs[entry].wide_stores) == (1, 1), entry
        assert not _problems(proofs, entry)
    assert not _problems(proofs, "literal")


def test_a_kernel_that_was_to_move_16_bytes_and_does_not_is_reported(
        proofs: dict[str, ptxas_report.Proof]) -> None:
    for entry in ("narrow<float, 4>", "by_width<float>"):
        assert _problems(proofs, entry) == ["moves nothing 16 bytes at once, and is meant to"]


def test_scalar_instances_need_no_wide_accesses(proofs: dict[str, ptxas_report.Proof]) -> None:
    for entry in ("wide<float, 1>", "narrow<float, 1>", "keeps<4>"):
        assert not _problems(proofs, entry)


def test_a_spill_is_reported_with_its_registers(proofs: dict[str, ptxas_report.Proof]) -> None:
    (problem,) = _problems(proofs, "keeps<120>")
    assert proofs["keeps<120>"].spills > 0 and proofs["keeps<120>"].stack > 0
    assert problem == f"spills {proofs['keeps<120>'].spills} bytes (64 registers of 64)"
    assert 0 < proofs["keeps<4>"].registers < 64


@pytest.mark.parametrize("entry, meant", [
    ("wide<float, 4>", True), ("wide<half, 8>", True), ("wide<half, 4>", False),
    ("wide<float, 1>", False), ("wide<double, 2>", True), ("wide<bool, 16>", True),
    ("literal", True), ("by_width<float>", True), ("calls<float>", True), ("alone<float>", False),
    ("keeps<4>", False)])
def test_width_is_declared_by_the_template_or_what_is_called(entry: str, meant: bool) -> None:
    assert ptxas_report.declares_wide(Kernel(TEXT, entry)) is meant


@pytest.mark.parametrize("bounds, limit", [
    ("", 255), (".maxntid 1024", 64), (".maxntid 1024, 1, 1\n.minnctapersm 2", 32),
    (".maxntid 256", 255), (".maxntid 256\n.minnctapersm 3", 80), (".maxntid 32, 4, 2", 255),
    (".maxntid 512", 128)])
def test_launch_bounds_limit_the_registers(bounds: str, limit: int) -> None:
    ptx = f".visible .entry one(\n\t.param .u64 p\n)\n{bounds}\n{{\n\tret;\n}}\n"
    assert ptxas_report.register_limits(ptx) == {"one": limit}


def test_what_is_saved_around_calls_with_registers_to_spare_is_no_spill() -> None:
    kernel = Kernel(TEXT, "keeps<4>")
    assert not ptxas_report.problems(kernel, ptxas_report.Proof(40, 8, 20, 0, 0, 255))
    assert not ptxas_report.problems(kernel, ptxas_report.Proof(40, 8, 0, 0, 0, 40))
    assert ptxas_report.problems(kernel, ptxas_report.Proof(40, 8, 20, 0, 0, 40))
    assert ptxas_report.problems(kernel, ptxas_report.Proof(254, 8, 20, 0, 0, 255))


def test_a_kernel_reaches_what_it_names_and_what_that_names() -> None:
    code = reached(TEXT, "calls")
    assert all(part in code for part in ("calls(const", "void through(", "struct Slice",
                                         "struct Width"))
    assert "void alone(" not in code and "block_reduce" not in code
    assert reached(TEXT, "nothing") == ""


def test_only_global_memory_counts() -> None:
    ptx = """
.visible .entry one(
	.param .u64 p
)
{
	ld.global.nc.L1::no_allocate.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd9];
	@%p1 ld.global.v2.u64 	{%rd1, %rd2}, [%rd9];
	ld.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd9];
	ld.shared.v4.f32 	{%f1, %f2, %f3, %f4}, [%r1];
	ld.param.v4.f32 	{%f1, %f2, %f3, %f4}, [p];
	st.local.v4.f32 	[%rd1], {%f1, %f2, %f3, %f4};
	ld.global.v4.u8 	{%rs1, %rs2, %rs3, %rs4}, [%rd9];
	st.global.v2.f32 	[%rd1], {%f1, %f2};
}
.weak .entry two(
)
{
	st.global.v8.b32 	[%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};
}
.func helper()
{
	ld.global.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd9];
}
"""
    assert ptxas_report.wide_accesses(ptx) == {"one": (3, 0), "two": (0, 1)}


def test_a_log_that_cannot_be_read_is_an_error_and_no_clean_bill() -> None:
    with pytest.raises(InternalError, match="tells no registers"):
        ptxas_report.usage("ptxas info : Compiling entry function 'k' for 'sm_90'\n"
                           "ptxas info : done")


def test_what_was_seen_is_kept_and_damage_is_not_believed(
        monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("GTAPE_CACHE_DIR", str(tmp_path))
    kernel, seen = Kernel(TEXT, "keeps<4>"), ptxas_report.Proof(20, 0, 0, 1, 2, 255)
    assert ptxas_report.known(kernel, "sm_90", "13.0") is None
    ptxas_report.keep(kernel, "sm_90", "13.0", seen)
    assert ptxas_report.known(kernel, "sm_90", "13.0") == seen
    assert ptxas_report.known(kernel, "sm_80", "13.0") is None
    assert ptxas_report.known(kernel, "sm_90", "13.1") is None
    for damaged in ("", "[1, 2", "[1, 2]", '{"a": 1}', "nothing"):
        next((tmp_path / ptxas_report.KIND).iterdir()).write_text(damaged)
        assert ptxas_report.known(kernel, "sm_90", "13.0") is None
