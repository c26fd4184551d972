"""The pooling of generated CPU programs, and its gradients, beside NumPy's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from gtape.devices.cpu import toolchain
from gtape.numerics import pooling as numerics
from gtape.numerics.windows import out_sizes, padding

pytestmark = pytest.mark.native


class Case(NamedTuple):
    """Windows over x [batch, *image, channels]."""

    batch: int
    image: tuple[int, int]
    channels: int
    size: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int] = (1, 1)
    kind: Any = "VALID"

    @property
    def attributes(self) -> tuple[Any, ...]:
        pads = padding(self.kind, self.image, self.size, self.strides, self.dilations)
        return self.size, self.strides, self.dilations, pads

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.image, self.channels)

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (self.batch, *out_sizes(self.image, *self.attributes), self.channels)

    def geometry(self) -> str:
        """The members of the C++ struct."""
        (top, _), (left, _) = self.attributes[-1]
        numbers = {"N": self.batch, "H": self.image[0], "W": self.image[1], "C": self.channels,
                   "P": self.size[0], "Q": self.size[1], "SH": self.strides[0],
                   "SW": self.strides[1], "DH": self.dilations[0], "DW": self.dilations[1],
                   "TOP": top, "LEFT": left, "OH": self.y_shape[1], "OW": self.y_shape[2]}
        return " ".join(f"static constexpr long {name} = {n};" for name, n in numbers.items())


CASES = {
    "one number": Case(1, (1, 1), 1, (1, 1), (1, 1)),
    "halves": Case(5, (14, 14), 16, (2, 2), (2, 2)),
    "halves, odd": Case(5, (7, 9), 32, (2, 2), (2, 2)),
    "halves, padded": Case(2, (7, 9), 17, (2, 2), (2, 2), kind="SAME"),
    "gaps": Case(2, (11, 12), 7, (2, 2), (3, 4)),
    "overlaps": Case(5, (9, 8), 16, (3, 3), (2, 2), kind="SAME"),
    "overlaps, valid": Case(1, (9, 8), 10, (5, 2), (1, 1)),
    "stride 1": Case(1, (6, 5), 3, (3, 3), (1, 1), kind="SAME"),
    "one row": Case(2, (1, 12), 31, (1, 3), (1, 2), kind="SAME"),
    "whole image": Case(5, (4, 3), 1, (4, 3), (1, 1)),
    "dilated": Case(2, (9, 10), 16, (2, 3), (2, 1), (3, 2), "SAME"),
    "dilated over the image": Case(1, (2, 3), 4, (2, 2), (1, 1), (4, 2), ((3, 3), (2, 2))),
    "large": Case(6, (41, 40), 32, (3, 3), (2, 2), kind="SAME"),
    "explicit": Case(2, (5, 6), 24, (3, 4), (3, 4), kind=((2, 1), (1, 3))),
}
TYPES = {"float": np.float32, "double": np.float64, "int": np.int32, "unsigned char": np.uint8}
FEW = ("halves, padded", "overlaps")
RUNS = [(name, number) for number in TYPES for name in CASES
        if number == "float" or name in FEW]
FLOATING = [run for run in RUNS if run[1] in ("float", "double")]

_PROGRAM = """
struct G{i} {{ {geometry} }};
GTAPE_EXPORT void maximum_{k}(const {T}* x, {T}* y) {{ max_pool<{T}, G{i}>(x, y); }}
GTAPE_EXPORT void maximum_grad_{k}(const {T}* g, const {T}* x, const {T}* y, {T}* gx) {{
    max_pool_grad<{T}, G{i}>(g, x, y, gx);
}}
GTAPE_EXPORT void pick_{k}(const {T}* a, const {T}* x, const {T}* y, {T}* b) {{
    max_pool_pick<{T}, G{i}>(a, x, y, b);
}}
GTAPE_EXPORT void index_{k}(const {T}* x, const {T}* y, long long* index) {{
    max_pool_index<{T}, G{i}, false>(x, y, index);
}}
GTAPE_EXPORT void batch_index_{k}(const {T}* x, const {T}* y, long long* index) {{
    max_pool_index<{T}, G{i}, true>(x, y, index);
}}
"""
_AVERAGE = """
GTAPE_EXPORT void average_{k}(const {T}* x, {T}* y) {{ average_pool<{T}, G{i}>(x, y); }}
GTAPE_EXPORT void average_grad_{k}(const {T}* g, {T}* gx) {{ average_pool_grad<{T}, G{i}>(g, gx); }}
"""


class Kernels:
    """The functions of one case."""

    def __init__(self, library: ctypes.CDLL, case: Case, suffix: str, number: str) -> None:
        self.library, self.case, self.suffix = library, case, suffix
        self.dtype = np.dtype(TYPES[number])

    def __call__(self, name: str, *arrays: np.ndarray, dtype: Any = None) -> np.ndarray:
        """What function `name` writes; what lies behind it stays as it was."""
        shape = self.case.x_shape if name.endswith("grad") else self.case.y_shape
        size = int(np.prod(shape))
        held = [np.ascontiguousarray(array, self.dtype) for array in arrays]
        held.append(np.full(size + 64, 99, dtype or self.dtype))
        self.library[f"{name}_{self.suffix}"](*(ctypes.c_void_p(v.ctypes.data) for v in held))
        assert (held[-1][size:] == 99).all()
        return held[-1][:size].reshape(shape)

    def data(self, *shape: int) -> np.ndarray:
        """Numbers with ties: neighbours are often equal."""
        values = np.random.default_rng(5).integers(0, 5, shape)
        return (values - (0 if self.dtype.kind == "u" else 2)).astype(self.dtype)


@pytest.fixture(scope="module")
def compiled() -> Callable[[str, str], Kernels]:
    """The kernels of a case and a number type."""
    names = list(CASES)
    text = '#include "cpu_pooling.h"\n'
    for name, number in RUNS:
        index = names.index(name)
        values = {"i": f"{index}_{number.replace(' ', '_')}", "T": number,
                  "k": f"{index}_{number.replace(' ', '_')}", "geometry": CASES[name].geometry()}
        text += _PROGRAM.format(**values)
        if (name, number) in FLOATING:
            text += _AVERAGE.format(**values)
    library = toolchain.library(text)
    return lambda name, number: Kernels(
        library, CASES[name], f"{names.index(name)}_{number.replace(' ', '_')}", number)


Compiled = Callable[[str, str], Kernels]


def _maximum(kernels: Kernels, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest values, and the winners, as NumPy finds them."""
    best = numerics.max_pool(np, x, *kernels.case.attributes)
    return best, numerics.winners(np, x, best, *kernels.case.attributes)


def _require_the_same_maxima(kernels: Kernels, x: np.ndarray) -> None:
    case = kernels.case
    best, found = _maximum(kernels, x)
    np.testing.assert_array_equal(kernels("maximum", x), best)
    g = kernels.data(*case.y_shape)
    np.testing.assert_array_equal(
        kernels("maximum_grad", g, x, best),
        numerics.unpool(np, g, found, case.x_shape, *case.attributes))
    a = kernels.data(*case.x_shape)[::-1]
    np.testing.assert_array_equal(kernels("pick", a, x, best),
                                  numerics.pick(np, a, found, *case.attributes))
    for name, batch in (("index", False), ("batch_index", True)):
        np.testing.assert_array_equal(
            kernels(name, x, best, dtype=np.int64),
            numerics.flat_index(np, found, case.x_shape, *case.attributes, batch))


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_maximum(compiled: Compiled, name: str, number: str) -> None:
    kernels = compiled(name, number)
    _require_the_same_maxima(kernels, kernels.data(*kernels.case.x_shape))


@pytest.mark.parametrize(("name", "number"), FLOATING)
def test_maximum_of_nan_and_infinity(compiled: Compiled, name: str, number: str) -> None:
    kernels = compiled(name, number)
    x = kernels.data(*kernels.case.x_shape)
    flat = x.reshape(-1)
    flat[::7], flat[1::3], flat[5::11] = -np.inf, np.inf, np.nan
    _require_the_same_maxima(kernels, x)
    _require_the_same_maxima(kernels, np.full_like(x, -np.inf))


@pytest.mark.parametrize(("name", "number"), FLOATING)
def test_average(compiled: Compiled, name: str, number: str) -> None:
    kernels = compiled(name, number)
    case, random = kernels.case, np.random.default_rng(3)
    x, g = random.normal(size=case.x_shape), random.normal(size=case.y_shape)
    tolerance = 4 * np.finfo(kernels.dtype).eps * case.size[0] * case.size[1]
    y, gx = kernels("average", x), kernels("average_grad", g)
    np.testing.assert_allclose(y, numerics.avg_pool(np, x, *case.attributes), rtol=0,
                               atol=tolerance)
    np.testing.assert_allclose(
        gx, numerics.avg_pool_grad(np, g, case.x_shape, *case.attributes), rtol=0, atol=tolerance)


def test_a_tie_goes_to_the_first_cell(compiled: Compiled) -> None:
    kernels = compiled("halves", "float")
    shape = kernels.case.x_shape
    gx = kernels("maximum_grad", np.ones(kernels.case.y_shape), np.ones(shape),
                 np.ones(kernels.case.y_shape))
    wanted = np.zeros(shape)
    wanted[:, ::2, ::2] = 1
    np.testing.assert_array_equal(gx, wanted)


def test_the_checker_notices_another_tie(compiled: Compiled) -> None:
    kernels = compiled("halves", "float")
    x = kernels.data(*kernels.case.x_shape)
    flipped = kernels("maximum_grad", np.ones(kernels.case.y_shape), x[:, ::-1],
                      _maximum(kernels, x[:, ::-1])[0])[:, ::-1]
    _, found = _maximum(kernels, x)
    wanted = numerics.unpool(np, np.ones(kernels.case.y_shape, np.float32), found, x.shape,
                             *kernels.case.attributes)
    assert (flipped != wanted).any() and flipped.sum() == wanted.sum()


def test_threads_change_no_bit(compiled: Compiled) -> None:
    kernels, library = compiled("large", "float"), toolchain.runtime()
    x, g = kernels.data(*kernels.case.x_shape), np.random.normal(size=kernels.case.y_shape)
    best = _maximum(kernels, x)[0]

    def results(count: int) -> list[np.ndarray]:
        library.gtape_set_threads(count)
        return [kernels("maximum", x), kernels("maximum_grad", g, x, best),
                kernels("average", x), kernels("average_grad", g)]

    before = library.gtape_threads()
    try:
        for alone, together in zip(results(1), results(3)):
            np.testing.assert_array_equal(alone, together)
    finally:
        library.gtape_set_threads(before)
