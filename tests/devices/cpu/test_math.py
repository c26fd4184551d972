"""The scalar functions of generated CPU code: their errors, their edges, their vectorised loops."""

from __future__ import annotations

import ctypes
import re
import subprocess
from typing import Any

import numpy as np
import pytest

from gtape.devices.cpu import toolchain
from gtape.devices.cpu.toolchain import recipe
from gtape.devices.kernel_source import expand
from tests.devices.cpu.math_loops import (
    EDGES,
    FUNCTIONS,
    INCLUDE,
    PAIRS,
    SCALAR_DOUBLES,
    call,
    every_float,
    functions,
    loop,
    some_doubles,
    ulps,
    worst,
)

pytestmark = [
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore::RuntimeWarning")]
HAS_LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63


def _erf(x: Any) -> Any:
    """2/√π e^(-x²) Σ 2ⁿ x²ⁿ⁺¹ / (1·3·…·(2n+1)), whose terms have one sign (DLMF 7.6.2)."""
    near = np.clip(x, -7, 7)
    term = total = near
    for n in range(1, 260):
        term = term * (2 * near * near / (2 * n + 1))
        total = total + term
    return total * np.exp(-near * near) * (2 / np.sqrt(np.pi * np.ones((), x.dtype)))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return toolchain.library(functions())


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_error_of_floats_is_as_stated(library: ctypes.CDLL, name: str) -> None:
    x = every_float()
    exact = FUNCTIONS[name].exact(x.astype(np.float64))
    error, where = worst(call(library, f"{name}_float", np.float32, x), exact, x)
    assert error <= FUNCTIONS[name].ulps, where


@pytest.fixture(scope="module")
def unfused() -> ctypes.CDLL:
    """The functions as a CPU without fused multiplication has them."""
    macros = ("__FMA__", "__ARM_FEATURE_FMA", "__FP_FAST_FMA")
    return toolchain.library("".join(f"#undef {m}\n" for m in macros) + functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_need_no_fused_multiplication(unfused: ctypes.CDLL, name: str) -> None:
    x = every_float(16411)
    exact = FUNCTIONS[name].exact(x.astype(np.float64))
    error, where = worst(call(unfused, f"{name}_float", np.float32, x), exact, x)
    assert error <= FUNCTIONS[name].ulps + 0.25, where


@pytest.mark.skipif(not HAS_LONG_DOUBLE, reason="long double has no more digits than double here")
@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.double_ulps])
def test_the_error_of_doubles_is_as_stated(library: ctypes.CDLL, name: str) -> None:
    x = some_doubles(FUNCTIONS[name].domain)
    exact = (_erf if name == "erf" else FUNCTIONS[name].exact)(x.astype(np.longdouble))
    error, where = worst(call(library, f"{name}_double", np.float64, x), exact, x)
    assert error <= FUNCTIONS[name].double_ulps, where


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.double_ulps is None])
def test_functions_of_libm_are_accurate(library: ctypes.CDLL, name: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 4001), EDGES])
    found = call(library, f"{name}_double", np.float64, x)
    np.testing.assert_allclose(found, FUNCTIONS[name].exact(x), rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("name", PAIRS)
def test_the_error_of_pairs_of_floats_is_as_stated(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(5)
    edges = np.array([*EDGES, 1e38, -1e38, 1e-45, -1e-45, 16777216, 8388609, -8388609, 8388607],
                     np.float32)
    first, second = (v.ravel() for v in np.meshgrid(edges, edges))
    bits = rng.integers(0, 1 << 32, (2, 300_000), np.uint64).astype(np.uint32).view(np.float32)
    base = np.exp(rng.uniform(-20, 20, 300_000)).astype(np.float32)
    near = (1 + rng.uniform(-0.01, 0.01, 300_000)).astype(np.float32)
    level = rng.uniform(-90, 90, 300_000)
    a = np.concatenate([first, bits[0], base, near])
    b = np.concatenate([second, bits[1], level / np.log(base), level / np.log(near)])
    b = b.astype(np.float32)
    exact, limit = PAIRS[name]
    wide = (v.astype(np.longdouble) for v in (a, b))
    error, where = worst(call(library, f"{name}_float", np.float32, a, b), exact(*wide), a, b)
    assert error <= limit, where


@pytest.mark.parametrize("name", PAIRS)
def test_the_edges_of_pairs_of_doubles(library: ctypes.CDLL, name: str) -> None:
    edges = np.array([*EDGES, 1e308, -1e308, 5e-324, -5e-324])
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    error, where = worst(call(library, f"{name}_double", np.float64, a, b),
                         PAIRS[name][0](*(v.astype(np.longdouble) for v in (a, b))), a, b)
    assert error <= 2, where


def test_sigmoid_follows_from_exp() -> None:
    built = toolchain.library(INCLUDE + "namespace gtape_cpu {" + loop(
        "sigmoid", "float", ["float"], "1 / (1 + exp(-a))") + "}")
    x = np.linspace(-87, 40, 1_000_001).astype(np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert worst(call(built, "sigmoid", np.float32, x), exact, x)[0] <= 2.5


# ---------------------------------------------------------------- the checks are checked


@pytest.mark.parametrize("name, right, wrong", [
    ("exp", "0.166665196f", "0.166675196f"), ("log", "-0.124056004f", "-0.125f"),
    ("sin", "0x1.4a7f09ep-54", "0x1.4a7f09dp-54")])
def test_a_wrong_coefficient_is_seen(name: str, right: str, wrong: str) -> None:
    text = expand(INCLUDE, "wrong")
    assert right in text
    built = toolchain.library(text.replace(right, wrong) + "namespace gtape_cpu {" + loop(
        "wrong", "float", ["float"], f"{name}(a)") + "}")
    x = every_float()
    error, _ = worst(call(built, "wrong", np.float32, x),
                     FUNCTIONS[name].exact(x.astype(np.float64)), x)
    assert error > FUNCTIONS[name].ulps + 0.5


def test_the_distance_of_special_values() -> None:
    inf, nan = np.inf, np.nan
    for found, exact, distance in [
            (0.0, 0.0, 0), (-0.0, 0.0, inf), (inf, inf, 0), (inf, -inf, 2.0**25), (nan, nan, 0),
            (1.0, nan, inf), (nan, 1.0, inf), (2.0**-149, 0.0, 1), (2.0**-126, 0.0, 2**23),
            (inf, 2.0**128 - 2.0**104, 1), (1 + 2.0**-23, 1.0, 1)]:
        assert ulps(np.array([found], np.float32), np.array([exact])) == distance


# ---------------------------------------------------------------- vectorised loops

_CALL = re.compile(r"^\s+(?:callq?|bl)\s", re.MULTILINE)
_PACKED = re.compile(r"^\s+(?:v?(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+)p[sd]\s"
                     r"|f\w+\s+[vz]\d+\.\d?[sd])", re.MULTILINE)


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The machine's text of each loop."""
    source = tmp_path_factory.mktemp("assembly") / "functions.cpp"
    source.write_text(expand(functions(), "functions"), "utf-8")
    made = recipe()
    text = subprocess.run([*made.compiler.command, *made.options, *made.optional, "-S", "-o", "-",
                           str(source)], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^_?(\w+_(?:float|double)):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("name", [*FUNCTIONS, *PAIRS])
def test_loops_over_floats_are_vectorised(assembly: dict[str, str], name: str) -> None:
    text = assembly[f"{name}_float"]
    assert _PACKED.search(text) and not _CALL.search(text)


@pytest.mark.parametrize("name", [*FUNCTIONS, *PAIRS])
def test_loops_over_doubles_are_vectorised_unless_libms(assembly: dict[str, str],
                                                        name: str) -> None:
    text = assembly[f"{name}_double"]
    if name in SCALAR_DOUBLES:
        assert _CALL.search(text)
    else:
        assert _PACKED.search(text) and not _CALL.search(text)
