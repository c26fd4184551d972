"""A launch is checked before it happens: count, dtypes, devices, memory."""

from __future__ import annotations

import numpy as np
import pytest

from gtape.core.errors import InternalError, InvalidArgumentError
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.emulator.executor import emulated_executor

_TEXT = expand('''#include "gtape.cuh"
template <typename T> __global__ void scale(const T* __restrict__ x, T* y, double factor,
                                            long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) y[i] = T(x[i] * T(factor));
}
template <typename T> __global__ void scale_in_place(T* x, long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) x[i] = x[i] + x[i];
}
''', "scale.cu")


pytestmark = pytest.mark.usefixtures("emulator")


def _launch(entry: str, *args: object) -> None:
    emulated_executor().launch(Kernel(_TEXT, entry), (1, 1, 1), (32, 1, 1), args)


def test_parameters_are_read_from_the_declaration() -> None:
    params = Kernel(_TEXT, "scale<half>").params
    assert [p.name for p in params] == ["x", "y", "factor", "n"]
    assert [p.type for p in params] == ["float16", "float16", "double", "long long"]
    assert [p.written for p in params] == [False, True, False, False]
    with pytest.raises(InternalError, match="declares no missing"):
        Kernel(_TEXT, "missing")


def test_a_right_launch_runs() -> None:
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    _launch("scale<float>", x, y, 2.0, 5)
    assert y.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(("args", "said"), [
    ((np.zeros(3, np.float32), np.zeros(3, np.float32), 2.0), "takes 4 arguments"),
    ((np.zeros(3), np.zeros(3, np.float32), 2.0, 3), "x must be an array of float32; got float64"),
    ((np.zeros(3, np.float32), 1.0, 2.0, 3), "y must be an array of float32; got float"),
    ((np.zeros(3, np.float32), np.zeros(3, np.float32), 2, 3), "factor must be a Python float"),
    ((np.zeros(3, np.float32), np.zeros(3, np.float32), 2.0, 3.0), "n must be a Python int")])
def test_a_wrong_launch_says_what_is_wrong(args: tuple[object, ...], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        _launch("scale<float>", *args)


def test_memory_that_is_read_and_written_at_once_is_refused() -> None:
    whole = np.arange(8, dtype=np.float32)
    with pytest.raises(InvalidArgumentError, match="x and y may not share memory"):
        _launch("scale<float>", whole[:5], whole[3:], 2.0, 5)
    _launch("scale<float>", whole[:4], whole[4:], 2.0, 4)
    _launch("scale_in_place<float>", whole, 8)
    assert whole[1] == 2


def test_a_repeated_element_is_as_large_as_itself() -> None:
    memory = np.arange(9, dtype=np.float32)
    _launch("scale<float>", np.broadcast_to(memory[:1], (8,)), memory[1:], 2.0, 1)
    assert memory[1] == 0
    with pytest.raises(InvalidArgumentError, match="may not share memory"):
        _launch("scale<float>", np.broadcast_to(memory[1:2], (8,)), memory[1:], 2.0, 1)


def test_arrays_of_two_devices_are_refused() -> None:
    class Elsewhere:
        dtype, nbytes, device = np.dtype(np.float32), 12, "GPU 1"

    with pytest.raises(InvalidArgumentError, match="one device; got cpu and GPU 1"):
        _launch("scale<float>", np.zeros(3, np.float32), Elsewhere(), 2.0, 3)
