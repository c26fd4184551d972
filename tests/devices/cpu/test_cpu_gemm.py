"""Matrix products of the runtime library, and those in line with programs, beside float64."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtape.devices.compiler import load
from gtape.devices.cpu import toolchain
from gtape.devices.cpu.toolchain import library, recipe
from gtape.devices.kernel_source import expand_file

pytestmark = pytest.mark.native

DTYPES = {"f32": np.float32, "f64": np.float64}
LONG, POINTER = ctypes.c_long, ctypes.c_void_p


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    yield
    toolchain.set_threads(0)


def operand(a: np.ndarray) -> tuple[Any, ...]:
    return POINTER(a.ctypes.data), *(LONG(stride // a.itemsize) for stride in a.strides[-2:])


def sizes(a: np.ndarray, b: np.ndarray) -> tuple[Any, ...]:
    return LONG(a.shape[-2]), LONG(b.shape[-1]), LONG(a.shape[-1])


def name_of(dtype: Any) -> str:
    return next(name for name, known in DTYPES.items() if known == dtype)


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None,
            native: ctypes.CDLL | None = None) -> np.ndarray:
    """A B, or C + A B; what lies between the rows of C must not change."""
    accumulate = c is not None
    wide = np.full((a.shape[0], b.shape[1] + 5), 7, a.dtype)
    made = wide[:, :b.shape[1]]
    made[...] = np.nan if c is None else c
    gemm = getattr(native or toolchain.runtime(), f"gtape_gemm_{name_of(a.dtype)}")
    gemm(*sizes(a, b), *operand(a), *operand(b), POINTER(wide.ctypes.data),
         LONG(wide.shape[1]), int(accumulate))
    assert (wide[:, b.shape[1]:] == 7).all()
    return made


def require_right(made: np.ndarray, a: np.ndarray, b: np.ndarray, c: Any = 0.0) -> None:
    """|made - (A B + C)| <= (k + 3) eps (|A| |B| + |C|), the bound of any order of summation."""
    a, b, c = (np.asarray(x, np.float64 if made.dtype == np.float32 else np.longdouble)
               for x in (a, b, c))
    bound = (a.shape[-1] + 3) * np.finfo(made.dtype).eps * (np.abs(a) @ np.abs(b) + np.abs(c))
    assert (np.abs(made - (a @ b + c)) <= bound).all()


def laid_out(random: np.random.Generator, rows: int, columns: int, layout: str, dtype: Any,
             ) -> np.ndarray:
    """A random matrix whose elements lie in memory as `layout` says."""
    values = random.standard_normal((rows, columns)).astype(dtype)
    if layout == "rows":
        return values
    if layout == "columns":
        return np.asfortranarray(values)
    if layout == "apart":
        wide = np.full((rows, columns + 9), np.nan, dtype)
        wide[:, 4: 4 + columns] = values
        return wide[:, 4: 4 + columns]
    if layout == "scattered":
        wide = np.full((2 * rows, 3 * columns), np.nan, dtype)
        wide[::2, ::3] = values
        return wide[::2, ::3]
    if layout == "reversed":
        return values[::-1, ::-1]
    return np.broadcast_to(values[:1], (rows, columns))


LAYOUTS = ("rows", "columns", "apart", "scattered", "reversed", "repeated")
SIZES = st.one_of(st.integers(1, 5), st.integers(1, 40), st.integers(1, 150))


class Case(NamedTuple):
    m: int
    n: int
    k: int
    layouts: tuple[str, str]
    dtype: str
    accumulate: bool
    threads: int
    seed: int

    def check(self, native: ctypes.CDLL | None = None) -> None:
        random = np.random.default_rng(self.seed)
        a = laid_out(random, self.m, self.k, self.layouts[0], DTYPES[self.dtype])
        b = laid_out(random, self.k, self.n, self.layouts[1], DTYPES[self.dtype])
        c = random.standard_normal((self.m, self.n)).astype(a.dtype) if self.accumulate else None
        (native or toolchain.runtime()).gtape_set_threads(self.threads)
        require_right(product(a, b, c, native), a, b, 0.0 if c is None else c)


CASES = st.builds(Case, SIZES, SIZES, SIZES, st.tuples(*[st.sampled_from(LAYOUTS)] * 2),
                  st.sampled_from(sorted(DTYPES)), st.booleans(), st.sampled_from([1, 2, 4]),
                  st.integers(0, 99))


@given(CASES)
@settings(max_examples=400)
def test_every_shape_and_layout(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"),
                                     ("columns", "columns"), ("scattered", "reversed")])
@pytest.mark.parametrize(("m", "n", "k"), [(530, 70, 1100), (30, 600, 800), (1, 900, 1000),
                                           (900, 1, 1000), (700, 9, 400), (1200, 33, 33),
                                           (3, 1, 9000), (1, 70, 8193)])
def test_large(m: int, n: int, k: int, layouts: tuple[str, str], dtype: str) -> None:
    for accumulate in (False, True):
        Case(m, n, k, layouts, dtype, accumulate, 2, 0).check()


@cache
def narrow(option: str) -> ctypes.CDLL:
    """The runtime library for a CPU with smaller registers."""
    return load("cpu", expand_file("cpu_runtime.cpp"), recipe("-O1", "-ffp-contract=fast", option),
                name="cpu_runtime")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="options for x86")
@pytest.mark.parametrize("option", ["-mno-avx512f", "-mno-avx"])
def test_smaller_registers(option: str) -> None:
    native = narrow(option)

    @given(CASES)
    @settings(max_examples=150)
    def check(case: Case) -> None:
        case.check(native)

    check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty(dtype: str) -> None:
    for m, n, k in ((0, 3, 4), (3, 0, 4), (0, 0, 0), (3, 4, 0)):
        a, b = np.ones((m, k), DTYPES[dtype]), np.ones((k, n), DTYPES[dtype])
        assert (product(a, b) == 0).all()
        assert (product(a, b, np.full((m, n), 5, a.dtype)) == 5).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(40, 40), (40, 3), (3, 40), (1, 40), (40, 1)])
def test_infinity_and_nan_stay_in_their_rows_and_columns(m: int, n: int, dtype: str) -> None:
    a, b = np.ones((m, 50), DTYPES[dtype]), np.ones((50, n), DTYPES[dtype])
    a[m - 1, 7], b[9, n - 1] = np.nan, np.inf
    expected = np.full((m, n), 50.0)
    expected[:, n - 1] = np.inf
    expected[m - 1] = np.nan
    np.testing.assert_array_equal(product(a, b), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(300, 500, 700), (500, 7, 900), (3000, 1, 400),
                                           (1, 3000, 400), (90, 90, 90)])
def test_results_do_not_depend_on_threads(m: int, n: int, k: int, dtype: str) -> None:
    random = np.random.default_rng(0)
    for layouts in (("rows", "columns"), ("columns", "rows")):
        a = laid_out(random, m, k, layouts[0], DTYPES[dtype])
        b = laid_out(random, k, n, layouts[1], DTYPES[dtype])
        results = []
        for count in (1, 2, 3, 4, 7):
            toolchain.set_threads(count)
            results.append(product(a, b))
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


def test_several_python_threads() -> None:
    toolchain.set_threads(2)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((200, 200)).astype(np.float32) for _ in range(2))
    expected = product(a, b)
    with ThreadPoolExecutor(4) as threads:
        for made in threads.map(lambda _: product(a, b), range(40)):
            np.testing.assert_array_equal(made, expected)


def batched(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """The products of a batch; an axis of one in a batch is repeated."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, shape + x.shape[-2:]) for x in (a, b))
    made = np.full((*shape, a.shape[-2], b.shape[-1]), np.nan, a.dtype) if c is None else c.copy()

    def offsets(x: np.ndarray) -> np.ndarray:
        steps = [np.arange(n) * s // x.itemsize for n, s in zip(shape, x.strides)]
        return sum(np.ix_(*steps), np.zeros(shape, np.int_)).ravel().astype(np.int_)

    kept = [offsets(x) for x in (a, b, made)]
    gemm = getattr(toolchain.runtime(), f"gtape_gemm_batched_{name_of(a.dtype)}")
    gemm(*sizes(a, b), *operand(a), *operand(b), *operand(made)[:2], int(c is not None),
         LONG(kept[0].size), *(POINTER(x.ctypes.data) for x in kept))
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("left", "right"), [((4, 3), (4, 3)), ((4, 1), (1, 3)), ((1, 1), (3, 2)),
                                             ((2, 1), (2, 1)), ((0, 2), (0, 2))])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 16), (1, 20, 30), (30, 1, 20), (130, 140, 90)])
def test_batches(m: int, n: int, k: int, left: tuple[int, ...], right: tuple[int, ...],
                 threads: int, dtype: str) -> None:
    toolchain.set_threads(threads)
    random = np.random.default_rng(0)
    a = random.standard_normal((*left, m, k)).astype(DTYPES[dtype])
    b = random.standard_normal((*right, n, k)).astype(DTYPES[dtype]).swapaxes(-1, -2)
    made = batched(a, b)
    require_right(made, a, b)
    require_right(batched(a, b, made), a, b, made)


STRIDES = {"rows": lambda rows, columns: (columns, 1), "columns": lambda rows, columns: (1, rows),
           "apart": lambda rows, columns: (columns + 9, 1),
           "scattered": lambda rows, columns: (6 * columns, 3)}
SHAPES = [(32, 10, 64), (17, 21, 33), (1, 50, 40), (60, 1, 10), (3, 3, 3), (25, 40, 1), (1, 1, 70)]
SMALL = [(m, n, k, layouts, (i + j) % 2 == 1) for i, (m, n, k) in enumerate(SHAPES)
         for j, layouts in enumerate((("rows", "rows"), ("columns", "rows"), ("rows", "columns"),
                                      ("columns", "columns"), ("apart", "scattered")))]


@cache
def small_programs(dtype: str) -> ctypes.CDLL:
    real = "float" if dtype == "f32" else "double"
    lines = ['#include "cpu_threads.h"', '#include "cpu_small_gemm.h"']
    for number, (m, n, k, layouts, accumulate) in enumerate(SMALL):
        strides = [*STRIDES[layouts[0]](m, k), *STRIDES[layouts[1]](k, n)]
        arguments = ", ".join(map(str, (m, n, k, *strides, n + 5)))
        call = f"gtape::small_gemm<{real}, {arguments}, {str(accumulate).lower()}>(a, b, c)"
        lines.append(f"GTAPE_EXPORT void small_{number}(const {real}* a, const {real}* b, "
                     f"{real}* c) {{ {call}; }}")
    return library("\n".join(lines) + "\n", name="small")


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_in_line(dtype: str) -> None:
    program = small_programs(dtype)
    random = np.random.default_rng(0)
    for number, (m, n, k, layouts, accumulate) in enumerate(SMALL):
        a = laid_out(random, m, k, layouts[0], DTYPES[dtype])
        b = laid_out(random, k, n, layouts[1], DTYPES[dtype])
        wide = np.full((m, n + 5), 7, a.dtype)
        c = random.standard_normal((m, n)) if accumulate else np.full((m, n), np.nan)
        wide[:, :n] = c
        getattr(program, f"small_{number}")(*(POINTER(x.ctypes.data) for x in (a, b, wide)))
        assert (wide[:, n:] == 7).all()
        c = c.astype(a.dtype) if accumulate else 0.0
        require_right(wide[:, :n], a, b, c)


def test_the_bound_is_not_too_wide() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 60, 60)).astype(np.float32)
    with pytest.raises(AssertionError):
        require_right(product(a, b) + np.float32(1e-3), a, b)
    with pytest.raises(AssertionError):
        require_right(product(a[:, :59], b[:59]), a, b)
