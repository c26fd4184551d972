"""Convolutions and pooling over one or two spatial axes, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, Shape, Value
from gtape.compile.lowering.indexing import compact
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.nn import convolution, pooling

Attrs = dict[str, Any]
_FLOATS = ("float32", "float64")
_CONVOLUTION = ("cpu_convolution.h", "cpu_convolution_filter.h")
_POOLING = ("cpu_pooling.h",)


def _two(sizes: Sequence[int], fill: int) -> tuple[int, int]:
    """The sizes of two axes; one axis is the second of two."""
    return (fill, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _geometry(x: Shape, y: Shape, window: Sequence[int], attrs: Attrs, channels: int | None = None,
              ) -> str | None:
    """`struct G` of kernels/cpu_windows.h; None where there are more axes, or no elements."""
    if len(window) > 2 or not window or 0 in x or 0 in y or 0 in window:
        return None
    (h, w), (oh, ow) = _two(x[1:-1], 1), _two(y[1:-1], 1)
    p, q = _two(window, 1)
    sh, sw = _two(attrs["strides"], 1)
    dh, dw = _two(attrs["dilations"], 1)
    lows = [low for low, _ in attrs["pads"]]
    top, left = _two(lows, 0)
    sizes = {"N": x[0], "H": h, "W": w, "C": x[-1], "P": p, "Q": q, "SH": sh, "SW": sw, "DH": dh,
             "DW": dw, "TOP": top, "LEFT": left, "OH": oh, "OW": ow}
    if channels is not None:
        sizes["O"] = channels
    # Constants of the template, so that loops over filter cells can be unrolled, and divisions by
    # strides become shifts or multiplications.
    return "static constexpr long " + ", ".join(f"{k} = {n}" for k, n in sizes.items()) + ";"


def _called(b: Builder, name: str, geometry: str, inputs: Sequence[Value], shape: Shape,
            headers: Sequence[str], scratch: bool = False, more: str = "") -> Value:
    """One call of a template with `geometry`, and with scratch memory if need be."""
    dtype = inputs[0].dtype
    kind = C_TYPES[dtype]

    def emit(program: Any, node: LibraryCall) -> str:
        pointers = [program.pointer(v) for v in (*node.inputs, *node.outputs)]
        if scratch:
            pointers.append(f"({kind}*)scratch")
        return f"{name}<{kind}, {program.structure(geometry)}{more}>({', '.join(pointers)});"

    def needed(program: Any) -> str:
        return f"sizeof({kind}) * {name}_scratch<{kind}, {program.structure(geometry)}>"

    node = LibraryCall(name, [compact(b, v) for v in inputs], (geometry, more), headers, emit,
                       needed if scratch else 0)
    return b.library(node, [(tuple(shape), dtype)])[0]


@lowers(convolution.convolution_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    image, filters = x
    shape = tuple(specs[0].shape)
    geometry = _geometry(image.shape, shape, filters.shape[:-2], attrs, filters.shape[-1])
    if geometry is None or attrs["groups"] != 1 or image.dtype not in _FLOATS:
        return None
    return _called(b, "convolution", geometry, [image, filters], shape, _CONVOLUTION, True)


@lowers(convolution.input_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    slope, filters = x
    shape = tuple(attrs["shape"])
    geometry = _geometry(shape, slope.shape, filters.shape[:-2], attrs, filters.shape[-1])
    if geometry is None or attrs["groups"] != 1 or slope.dtype not in _FLOATS:
        return None
    return _called(b, "convolution_input_grad", geometry, [slope, filters], shape, _CONVOLUTION,
                   True)


@lowers(convolution.filter_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    image, slope = x
    shape = tuple(specs[0].shape)
    geometry = _geometry(image.shape, slope.shape, attrs["size"], attrs, slope.shape[-1])
    if geometry is None or attrs["groups"] != 1 or image.dtype not in _FLOATS:
        return None
    return _called(b, "convolution_filter_grad", geometry, [image, slope], shape, _CONVOLUTION,
                   True)


def _pool(b: Builder, name: str, inputs: list[Value], attrs: Attrs, image: Shape, pooled: Shape,
          shape: Shape) -> Value | None:
    geometry = _geometry(image, pooled, attrs["size"], attrs)
    if geometry is None or inputs[0].dtype not in _FLOATS:
        return None
    return _called(b, name, geometry, inputs, shape, _POOLING)


@lowers(pooling.max_pool_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    shape = tuple(specs[0].shape)
    return _pool(b, "max_pool", x, attrs, x[0].shape, shape, shape)


@lowers(pooling.max_pool_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    _, image, pooled = x
    return _pool(b, "max_pool_grad", x, attrs, image.shape, pooled.shape, image.shape)


@lowers(pooling.max_pool_pick_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    _, image, pooled = x
    return _pool(b, "max_pool_pick", x, attrs, image.shape, pooled.shape, pooled.shape)


@lowers(pooling.avg_pool_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    shape = tuple(specs[0].shape)
    return _pool(b, "average_pool", x, attrs, x[0].shape, shape, shape)


@lowers(pooling.avg_pool_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    shape = tuple(attrs["shape"])
    return _pool(b, "average_pool_grad", x, attrs, shape, x[0].shape, shape)
