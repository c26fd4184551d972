"""Kernel text as g++ is to see it."""

from __future__ import annotations

import pytest

from gtape.devices.simulated.kernel_text import adapted


def _of(text: str, *expressions: str) -> str:
    return adapted(text, "kernel.cu", expressions).text


def test_kernels_with_c_linkage_are_exported() -> None:
    text = _of('extern "C" __global__ void add(float* x) {}\n'
               'extern "C" {\n__global__ void __launch_bounds__(128, 2) index(int n) {}\n}\n')
    for name in ("add", "index"):
        assert f"SIMULATED_KERNEL({name}, &gtape_global_{name})" in text
        assert f"void gtape_global_{name}(" in text or f" gtape_global_{name}(" in text


def test_names_in_comments_strings_and_directives_are_nobodys() -> None:
    text = _of('// extern "C" __global__ void a(int x)\n/* __device__ int b; */\n'
               '#define K extern "C" __global__\nconst char* c = "__shared__ extern";\n')
    assert "SIMULATED_KERNEL" not in text and "SIMULATED_SIZE" not in text
    assert '"__shared__ extern"' in text


def test_templates_are_exported_where_an_expression_asks() -> None:
    made = adapted("template <typename T> __global__ void f(T* x) {}", "k.cu",
                   ["f<float>", "&f<double>"])
    symbols = made.symbols
    assert symbols.keys() == {"f<float>", "&f<double>"} and len(set(symbols.values())) == 2
    assert f"SIMULATED_KERNEL({symbols['f<float>']}, &f<float>)" in made.text
    assert f"SIMULATED_KERNEL({symbols['&f<double>']}, &f<double>)" in made.text


@pytest.mark.parametrize("declared, wanted", [
    ("extern __shared__ float x[];", "SIMULATED_DYNAMIC(x, float);"),
    ("extern __shared__ __align__(16) unsigned char x[];", "SIMULATED_DYNAMIC(x, unsigned char);"),
    ("extern  __shared__\n int x [ ] ;", "SIMULATED_DYNAMIC(x, int);"),
    ("extern __shared__ float x[][4];",
     "auto& x = *reinterpret_cast<gtape_emulator::plain<float> (*)[1024][4]>"),
])
def test_shared_memory_of_the_launchs_size_is_a_pointer(declared: str, wanted: str) -> None:
    text = _of(f'extern "C" __global__ void f() {{\n{declared}\n}}')
    assert wanted in text and "extern __shared__" not in text


def test_lines_stay_where_they_were() -> None:
    text = _of("int a;\nextern __shared__\n float x[\n];\nint b;\n")
    body = text.split("\n", 1)[1]
    assert body.splitlines()[4] == "int b;"


def test_variables_of_the_device_can_be_asked_for() -> None:
    text = _of("__device__ int a;\n__constant__ float b[3][2] = {};\n"
               "static __device__ int c;\n__device__ float f(float x) { return x; }\n"
               "__device__ __forceinline__ int g();\n")
    assert [name for name in "abcfg" if f"SIMULATED_SIZE({name})" in text] == ["a", "b", "c"]
    assert "__device__ float f(float x)" in text and "__device__ __forceinline__ int g();" in text
