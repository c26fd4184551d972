"""What ops name as their kernels on GPUs: each exists and takes what the op gives it."""

from __future__ import annotations

import inspect

import pytest

import gtape as tf
from gtape.core.op import Op, declared
from gtape.opdef.primitive import Primitive
from gtape.ops import every_module

every_module()
ON_CUDA = [op for op in declared() if op.gpu_kernel is not None]


@pytest.mark.parametrize("op", ON_CUDA, ids=lambda op: op.name)
def test_the_kernel_takes_the_arrays_and_the_attributes_by_name(op: Op) -> None:
    arrays = ("a", "b") if op.variadic else op.params
    call = inspect.signature(op.cuda_kernel()).bind("gpu", *arrays, **dict.fromkeys(op.attr_names))
    assert {*op.attr_names} <= {*call.arguments}


def test_the_ops_that_matter_have_kernels() -> None:
    names = {op.name for op in ON_CUDA}
    assert {"matmul_", "reduce_sum_", "softmax_", "gather_", "convolution_", "cast_"} <= names


def test_a_kernel_is_found_at_its_first_use_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from gtape.devices.cuda.elementwise import maps

    calls = []
    monkeypatch.setattr(maps, "cast", lambda gpu, x, dtype: calls.append((gpu, x, dtype)))
    op = Primitive(lambda xp, x, *, dtype: x)
    op.on_cuda("elementwise.maps.cast")
    op._kernel("gpu", 1, dtype=tf.int32)
    monkeypatch.setattr(maps, "cast", None)
    op._kernel("gpu", 2, dtype=tf.int8)
    assert calls == [("gpu", 1, tf.int32), ("gpu", 2, tf.int8)]
