"""The convolution of generated CPU programs, and its gradients, beside NumPy's in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from gtape.devices.cpu import toolchain
from gtape.numerics import convolution as numerics
from gtape.numerics.windows import Pads, out_sizes, padding

pytestmark = pytest.mark.native


class Case(NamedTuple):
    """A convolution of x [batch, *image, channels] with filters [*size, channels, features]."""

    batch: int
    image: tuple[int, int]
    channels: int
    size: tuple[int, int]
    features: int
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    kind: Any = "SAME"

    @property
    def pads(self) -> Pads:
        return padding(self.kind, self.image, self.size, self.strides, self.dilations)

    @property
    def outs(self) -> tuple[int, ...]:
        return tuple(out_sizes(self.image, self.size, self.strides, self.dilations, self.pads))

    @property
    def attributes(self) -> tuple[Any, Any, Pads]:
        return self.strides, self.dilations, self.pads

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.image, self.channels)

    @property
    def k_shape(self) -> tuple[int, ...]:
        return (*self.size, self.channels, self.features)

    @property
    def y_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.outs, self.features)

    def geometry(self) -> str:
        """The members of the C++ struct."""
        (top, _), (left, _) = self.pads
        numbers = {"N": self.batch, "H": self.image[0], "W": self.image[1], "C": self.channels,
                   "P": self.size[0], "Q": self.size[1], "O": self.features,
                   "SH": self.strides[0], "SW": self.strides[1], "DH": self.dilations[0],
                   "DW": self.dilations[1], "TOP": top, "LEFT": left, "OH": self.outs[0],
                   "OW": self.outs[1]}
        return " ".join(f"static constexpr long {name} = {n};" for name, n in numbers.items())


CASES = {
    "one number": Case(1, (1, 1), 1, (1, 1), 1),
    "pointwise": Case(5, (7, 9), 16, (1, 1), 32),
    "pointwise strided": Case(2, (7, 9), 3, (1, 1), 5, strides=(2, 3)),
    "gray image": Case(5, (28, 28), 1, (3, 3), 16),
    "colours": Case(2, (12, 11), 3, (3, 3), 32),
    "two images at once": Case(4, (4, 4), 16, (3, 3), 32),
    "odd channels": Case(1, (6, 5), 7, (3, 3), 17),
    "ten classes": Case(5, (5, 5), 17, (3, 3), 10),
    "three blocks": Case(1, (6, 5), 4, (3, 3), 48),
    "overlapping blocks": Case(2, (5, 4), 33, (2, 3), 80),
    "many channels": Case(1, (4, 5), 70, (3, 3), 64),
    "valid": Case(5, (9, 8), 16, (3, 3), 16, kind="VALID"),
    "valid flat": Case(1, (7, 33), 3, (5, 2), 7, kind="VALID"),
    "stride 2": Case(5, (9, 8), 16, (3, 3), 32, strides=(2, 2)),
    "stride 3": Case(1, (10, 11), 7, (3, 3), 16, strides=(3, 3), kind="VALID"),
    "stride over taps": Case(2, (9, 10), 3, (2, 1), 16, strides=(3, 2)),
    "stride unlike": Case(1, (9, 40), 1, (5, 4), 3, strides=(1, 3)),
    "dilation": Case(5, (11, 9), 16, (3, 3), 16, dilations=(2, 3)),
    "dilation and stride": Case(1, (15, 14), 3, (3, 3), 17, strides=(2, 3), dilations=(4, 2)),
    "dilation beyond": Case(1, (3, 40), 5, (3, 3), 16, dilations=(4, 15)),
    "wide": Case(1, (3, 100), 3, (3, 3), 16),
    "stem": Case(1, (33, 34), 3, (7, 7), 32, strides=(2, 2)),
    "long": Case(2, (1, 60), 2, (1, 11), 16),
    "explicit": Case(1, (5, 6), 3, (3, 3), 16, kind=((4, 0), (1, 5))),
    "explicit strided": Case(2, (5, 6), 16, (2, 3), 7, strides=(2, 2), kind=((0, 3), (4, 1))),
    "to one channel": Case(2, (9, 16), 16, (3, 3), 1),
    "to three channels": Case(2, (6, 7), 37, (3, 3), 3, strides=(2, 1)),
    "to colours, wide": Case(1, (5, 40), 40, (5, 5), 3),
    "cropped end": Case(1, (10, 10), 16, (2, 2), 16, strides=(4, 3), kind="VALID"),
}
DOUBLES = ("gray image", "colours", "odd channels", "ten classes", "overlapping blocks",
           "stride 2", "to three channels", "dilation and stride", "explicit strided")
RUNS = [(name, "float") for name in CASES] + [(name, "double") for name in DOUBLES]
TYPES = {"float": np.float32, "double": np.float64}

_PROGRAM = """
struct G{i} {{ {geometry} }};
GTAPE_EXPORT void forward_{i}_{T}(const {T}* x, const {T}* k, {T}* y, {T}* scratch) {{
    convolution<{T}, G{i}>(x, k, y, scratch);
}}
GTAPE_EXPORT void input_{i}_{T}(const {T}* gy, const {T}* k, {T}* gx, {T}* scratch) {{
    convolution_input_grad<{T}, G{i}>(gy, k, gx, scratch);
}}
GTAPE_EXPORT void filter_{i}_{T}(const {T}* x, const {T}* gy, {T}* gk, {T}* scratch) {{
    convolution_filter_grad<{T}, G{i}>(x, gy, gk, scratch);
}}
GTAPE_EXPORT long forward_scratch_{i}_{T}() {{ return convolution_scratch<{T}, G{i}>; }}
GTAPE_EXPORT long input_scratch_{i}_{T}() {{ return convolution_input_grad_scratch<{T}, G{i}>; }}
GTAPE_EXPORT long filter_scratch_{i}_{T}() {{ return convolution_filter_grad_scratch<{T}, G{i}>; }}
"""
_INCLUDES = '#include "cpu_convolution.h"\n#include "cpu_convolution_filter.h"\n'


_EPILOGUE = """
struct BiasRelu {{
    const float* bias;
    float operator()(float value, long channel) const {{
        const float sum = value + bias[channel];
        return sum > 0 ? sum : 0;
    }}
}};
struct G {{ {geometry} }};
GTAPE_EXPORT void fused(const float* x, const float* k, float* y, float* scratch,
                        const float* bias) {{
    convolution<float, G>(x, k, y, scratch, BiasRelu{{bias}});
}}
"""


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads for one test."""
    library = toolchain.runtime()
    before = library.gtape_threads()
    yield library.gtape_set_threads
    library.gtape_set_threads(before)


@pytest.fixture(scope="module")
def compiled() -> Callable[[str, str], Kernels]:
    """The kernels of a case and a number type."""
    texts = dict.fromkeys(TYPES, _INCLUDES)
    for name, number in RUNS:
        index = list(CASES).index(name)
        texts[number] += _PROGRAM.format(i=index, T=number, geometry=CASES[name].geometry())
    libraries = {number: toolchain.library(text) for number, text in texts.items()}
    return lambda name, number: Kernels(libraries[number], list(CASES).index(name), number)


class Kernels:
    """The three functions of one case; what lies behind a result or a scratch stays as it was."""

    def __init__(self, library: ctypes.CDLL, index: int, number: str) -> None:
        self.library, self.suffix, self.dtype = library, f"{index}_{number}", TYPES[number]

    def forward(self, x: np.ndarray, k: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return self._call("forward", x, k, shape)

    def input_grad(self, gy: np.ndarray, k: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return self._call("input", gy, k, shape)

    def filter_grad(self, x: np.ndarray, gy: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return self._call("filter", x, gy, shape)

    def _call(self, name: str, a: np.ndarray, b: np.ndarray,
              shape: tuple[int, ...]) -> np.ndarray:
        needed = self.library[f"{name}_scratch_{self.suffix}"]
        needed.restype = ctypes.c_long
        size, scratch = int(np.prod(shape)), needed()
        arrays = [np.ascontiguousarray(array, self.dtype) for array in (a, b)]
        arrays += [np.full(count + 64, 12345, self.dtype) for count in (size, scratch)]
        self.library[f"{name}_{self.suffix}"](*(ctypes.c_void_p(v.ctypes.data) for v in arrays))
        assert (arrays[2][size:] == 12345).all() and (arrays[3][scratch:] == 12345).all()
        return arrays[2][:size].reshape(shape)


def _data(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, filters and a cotangent that float32 holds exactly."""
    random = np.random.default_rng(7)
    shapes = case.x_shape, case.k_shape, case.y_shape
    x, k, gy = (random.normal(size=shape).astype(np.float32).astype(float) for shape in shapes)
    return x, k, gy


def _require_close(found: np.ndarray, wanted: np.ndarray, terms: int) -> None:
    """Equal but for the rounding of sums of `terms` products of normal numbers."""
    bound = 4 * np.finfo(found.dtype).eps * terms**0.5 * max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_forward(compiled: Callable[[str, str], Kernels], name: str, number: str) -> None:
    case = CASES[name]
    x, k, _ = _data(case)
    wanted = numerics.conv_forward(np, x, k, *case.attributes)
    found = compiled(name, number).forward(x, k, case.y_shape)
    _require_close(found, wanted, int(np.prod(case.k_shape[:-1])))


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_input_gradient(compiled: Callable[[str, str], Kernels], name: str, number: str) -> None:
    case = CASES[name]
    _, k, gy = _data(case)
    wanted = numerics.conv_input_grad(np, gy, k, case.x_shape, *case.attributes)
    found = compiled(name, number).input_grad(gy, k, case.x_shape)
    _require_close(found, wanted, int(np.prod(case.size)) * case.features)


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_filter_gradient(compiled: Callable[[str, str], Kernels], name: str, number: str) -> None:
    case = CASES[name]
    x, _, gy = _data(case)
    wanted = numerics.conv_filter_grad(np, x, gy, case.size, *case.attributes)
    found = compiled(name, number).filter_grad(x, gy, case.k_shape)
    _require_close(found, wanted, case.batch * int(np.prod(case.outs)))


@pytest.mark.parametrize("name", DOUBLES)
def test_the_gradients_are_the_adjoints(compiled: Callable[[str, str], Kernels],
                                        name: str) -> None:
    case, kernels = CASES[name], compiled(name, "double")
    x, k, gy = _data(case)
    product = np.vdot(kernels.forward(x, k, case.y_shape), gy)
    np.testing.assert_allclose(np.vdot(x, kernels.input_grad(gy, k, x.shape)), product, rtol=1e-10)
    np.testing.assert_allclose(np.vdot(k, kernels.filter_grad(x, gy, k.shape)), product, rtol=1e-10)


@pytest.mark.parametrize("name", ["gray image", "two images at once", "stem", "to colours, wide"])
def test_threads_change_no_bit(compiled: Callable[[str, str], Kernels], name: str,
                               threads: Callable[[int], None]) -> None:
    case, kernels = CASES[name], compiled(name, "float")
    x, k, gy = _data(case)

    def results(count: int) -> list[np.ndarray]:
        threads(count)
        return [kernels.forward(x, k, case.y_shape), kernels.input_grad(gy, k, case.x_shape),
                kernels.filter_grad(x, gy, case.k_shape)]

    for alone, together in zip(results(1), results(3)):
        np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("name", ["wide", "overlapping blocks", "to three channels"])
def test_an_epilogue_is_applied_once_to_every_output(name: str) -> None:
    case = CASES[name]
    library = toolchain.library(_INCLUDES + _EPILOGUE.format(geometry=case.geometry()))
    x, k, _ = _data(case)
    bias = np.linspace(-3, 3, case.features)
    y, scratch = np.empty(case.y_shape, np.float32), np.empty(k.size, np.float32)
    arrays = [x.astype(np.float32), k.astype(np.float32), y, scratch, bias.astype(np.float32)]
    library.fused(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
    wanted = np.maximum(numerics.conv_forward(np, x, k, *case.attributes) + bias, 0)
    _require_close(y, wanted, int(np.prod(case.k_shape[:-1])))


def test_the_checker_notices_a_shifted_window(compiled: Callable[[str, str], Kernels]) -> None:
    case = CASES["explicit"]
    x, k, _ = _data(case)
    (top, bottom), sides = case.pads
    shifted = (top - 1, bottom + 1), sides
    wrong = numerics.conv_forward(np, x, k, case.strides, case.dilations, shifted)
    with pytest.raises(AssertionError):
        _require_close(compiled("explicit", "float").forward(x, k, case.y_shape), wrong,
                       int(np.prod(case.k_shape[:-1])))
