"""Convolutions and pooling over one or two spatial axes, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Attrs, Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, Shape, Value
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.nn import convolution, pooling

_FLOATS = ("float32", "float64")
_CONVOLUTION = ("cpu_convolution.h", "cpu_convolution_filter.h")


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
            headers: Sequence[str], scratch: bool = False) -> Value:
    """One call of a template with `geometry`, and with scratch memory if need be."""
    dtype = inputs[0].dtype
    kind = C_TYPES[dtype]

    def emit(program: Any, node: LibraryCall) -> str:
        pointers = [program.pointer(v) for v in (*node.inputs, *node.outputs)]
        if scratch:
            pointers.append(f"({kind}*)scratch")
        return f"{name}<{kind}, {program.structure(geometry)}>({', '.join(pointers)});"

    def needed(program: Any) -> str:
        return f"sizeof({kind}) * {name}_scratch<{kind}, {program.structure(geometry)}>"

    node = LibraryCall(name, [b.compact(v) for v in inputs], geometry, headers, emit,
                       needed if scratch else 0)
    return b.library(node, [(tuple(shape), dtype)])[0]


def _convolved(b: Builder, name: str, inputs: Sequence[Value], attrs: Attrs, image: Shape, y: Shape,
               filters: Shape, shape: Shape) -> Value | None:
    geometry = _geometry(image, y, filters[:-2], attrs, filters[-1])
    if geometry is None or attrs["groups"] != 1 or inputs[0].dtype not in _FLOATS:
        return None
    return _called(b, name, geometry, inputs, shape, _CONVOLUTION, True)


@lowers(convolution.convolution_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    shape = tuple(specs[0].shape)
    return _convolved(b, "convolution", x, attrs, x[0].shape, shape, x[1].shape, shape)


@lowers(convolution.input_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    slope, filters = x
    shape = tuple(attrs["shape"])
    return _convolved(b, "convolution_input_grad", x, attrs, shape, slope.shape, filters.shape,
                      shape)


@lowers(convolution.filter_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    image, slope = x
    shape = tuple(specs[0].shape)
    filters = (*attrs["size"], image.shape[-1], slope.shape[-1])
    return _convolved(b, "convolution_filter_grad", x, attrs, image.shape, slope.shape, filters,
                      shape)


def _pool(b: Builder, name: str, inputs: list[Value], attrs: Attrs, image: Shape, pooled: Shape,
          shape: Shape) -> Value | None:
    geometry = _geometry(image, pooled, attrs["size"], attrs)
    if geometry is None or inputs[0].dtype not in _FLOATS:
        return None
    return _called(b, name, geometry, inputs, shape, ("cpu_pooling.h",))


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
