"""The other names of generated CPU code, beside the vectorised functions, and every scalar op's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf  # noqa: F401  (declares the scalar ops)
from gtape.core.op import declared
from gtape.devices.cpu import toolchain
from gtape.opdef.cuda_text import C_TYPES, CudaPrinter, compute_dtype, servable
from gtape.opdef.elementwise import ScalarOp
from gtape.opdef.scalar_graph import ScalarGraph
from tests.devices.cpu.math_loops import EDGES, INCLUDE, call, every_float, loop, special

pytestmark = [
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore::RuntimeWarning")]

# ---------------------------------------------------------------- numbers of two bytes


def _conversions(kind: str) -> ctypes.CDLL:
    return toolchain.library(
        INCLUDE + "namespace gtape_cpu {" + loop("widen", "float", [kind], "a")
        + loop("narrow", kind, ["float"], "a")
        + loop("in_register", "float", ["float"], f"rounded<{kind}>(a)")
        + loop("narrow_double", kind, ["double"], "to_odd(a)") + "}")


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_two_byte_numbers_are_rounded_to_even(kind: str) -> None:
    if kind == "half":
        dtype: Any = np.float16
    else:
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    built = _conversions(kind)
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = bits.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(call(built, "widen", np.float32, bits), wide)
    halfway = (wide[:-1].astype(np.float64) + wide[1:]) / 2
    x = np.concatenate([wide, halfway.astype(np.float32), every_float()])
    found = call(built, "narrow", np.uint16, x).view(dtype)
    expected = x.astype(dtype)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(found.view(np.uint16)[known], expected.view(np.uint16)[known])
    assert np.isnan(found[~known]).all()
    rounded = call(built, "in_register", np.float32, x)
    np.testing.assert_array_equal(rounded.view(np.uint32)[known],
                                  expected.astype(np.float32).view(np.uint32)[known])
    assert np.isnan(rounded[~known]).all()


def test_doubles_become_halves_in_one_rounding() -> None:
    wide = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    finite = np.sort(wide[np.isfinite(wide)])
    halfway = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([wide, halfway, halfway * (1 + 2.0 ** -40), halfway * (1 - 2.0 ** -40),
                        [65519.999999, 65520, 1e39, -1e39, 1e308, 5e-324, -1e-50, np.nan]])
    found = call(_conversions("half"), "narrow_double", np.uint16, x).view(np.float16)
    expected = x.astype(np.float16)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(found.view(np.uint16)[known], expected.view(np.uint16)[known])
    assert np.isnan(found[~known]).all()


# ---------------------------------------------------------------- the other names

_SPECIAL: dict[str, tuple[Callable[..., Any], Any]] = {
    "lgamma(a)": (special.gammaln, np.linspace(-5.3, 40, 999)),
    "digamma(a)": (special.digamma, np.concatenate([np.linspace(-9.97, 60, 999), [-1.0]])),
    "erfinv(a)": (special.erfinv, np.concatenate([np.linspace(-0.9999, 0.9999, 999), [1, -1]])),
    "normcdfinv(a)": (special.ndtri, np.concatenate([np.linspace(1e-9, 1, 999), [0, 1e-200]])),
    "cyl_bessel_i0(a)": (special.i0, np.linspace(-60, 60, 999)),
    "cyl_bessel_i1(a)": (special.i1, np.linspace(-60, 60, 999)),
    "log_of_beta(a, a + 1)": (lambda x: special.betaln(x, x + 1), np.linspace(0.1, 30, 999)),
}


@pytest.mark.parametrize("body", _SPECIAL)
@pytest.mark.parametrize("kind, dtype, rtol", [("float", np.float32, 3e-7),
                                               ("double", np.float64, 3e-13)])
def test_special_functions(body: str, kind: str, dtype: Any, rtol: float) -> None:
    built = toolchain.library(INCLUDE + "namespace gtape_cpu {" + loop(
        "special", kind, [kind], body) + "}")
    exact, x = _SPECIAL[body]
    x = x.astype(dtype)
    expected = exact(x.astype(np.float64))
    if "gamma" in body:  # beside a zero of the function, an error is one of its argument
        expected = np.where(np.isnan(expected) & (x > 0), np.inf, expected)
    found = call(built, "special", dtype, x).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=2 * rtol)


_EXACT: dict[str, Callable[..., Any]] = {
    "larger(a, b)": np.maximum, "smaller(a, b)": np.minimum,
    "floor_remainder(a, b)": np.mod, "fmod(a, b)": np.fmod, "sign_of(a)": lambda a, b: np.sign(a),
    "absolute(a)": lambda a, b: np.abs(a), "floor(a)": lambda a, b: np.floor(a),
    "ceil(a)": lambda a, b: np.ceil(a), "trunc(a)": lambda a, b: np.trunc(a),
    "rint(a)": lambda a, b: np.rint(a), "nan_at(a)": lambda a, b: np.isnan(a) * 1.0,
    "inf_at(a)": lambda a, b: np.isinf(a) * 1.0, "finite_at(a)": lambda a, b: np.isfinite(a) * 1.0,
    "infinity<T>()": lambda a, b: np.full_like(a, np.inf),
    "not_a_number<T>()": lambda a, b: np.full_like(a, np.nan)}


@pytest.mark.parametrize("kind, dtype", [("float", np.float32), ("double", np.float64)])
def test_exact_functions_are_numpys(kind: str, dtype: Any) -> None:
    built = toolchain.library(f"{INCLUDE}namespace gtape_cpu {{ using T = {kind};\n" + "".join(
        loop(f"exact{i}", kind, [kind, kind], body) for i, body in enumerate(_EXACT)) + "}")
    drawn = np.random.default_rng(1).standard_normal(20) * 9
    numbers = np.concatenate([EDGES, drawn]).astype(dtype)
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    for i, (body, exact) in enumerate(_EXACT.items()):
        np.testing.assert_array_equal(call(built, f"exact{i}", dtype, a, b), exact(a, b), body)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integers(dtype: str) -> None:
    kind = C_TYPES[dtype]
    bodies: dict[str, Callable[..., Any]] = {
        "larger(a, b)": np.maximum, "smaller(a, b)": np.minimum,
        "absolute(a)": lambda a, b: np.abs(a), "sign_of(a)": lambda a, b: np.sign(a),
        "shifted_left(a, b)": np.left_shift, "shifted_right(a, b)": np.right_shift}
    built = toolchain.library(f"{INCLUDE}namespace gtape_cpu {{\n" + "".join(
        loop(f"whole{i}", kind, [kind, kind], body) for i, body in enumerate(bodies)) + "}")
    info = np.iinfo(dtype)
    numbers = np.array([0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100, info.max, info.min], dtype)
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    for i, (body, exact) in enumerate(bodies.items()):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(call(built, f"whole{i}", dtype, a, b), exact(a, b), body)


# ---------------------------------------------------------------- every scalar op


def test_every_scalar_op_finds_its_names() -> None:
    scalar_ops = [op for op in declared() if isinstance(op, ScalarOp)]
    made = []
    for dtype in ("float32", "float64", "float16", "int32", "uint8"):
        for number, op in enumerate(scalar_ops):
            scope = ScalarGraph()
            kinds = dict.fromkeys(op.params, "bool" if op.types == "logical" else dtype)
            if op.types == "select":
                kinds[op.params[0]] = "bool"
            body = scope.node(op, tuple(scope.input(p) for p in op.params))
            barred = ("integer",) if "float" in dtype else ("float", "real_float")
            if not servable([body], kinds) or op.types in barred:
                continue
            printer = CudaPrinter([body], kinds, {p: p for p in op.params}, dtype)
            given = ", ".join(f"{C_TYPES[compute_dtype(kinds[p])]} {p}" for p in op.params)
            lines = printer.lines()
            made.append(f"auto {op.name}_{dtype}_{number}({given}) {{ {' '.join(lines)} "
                        f"return {printer.results([dtype])[0]}; }}\n")
    assert len(made) > 200
    toolchain.library(f"{INCLUDE}namespace gtape_cpu {{\n{''.join(made)}}}")
