"""Which dtypes an elementwise op takes, and which it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core import dtypes
from gtape.core.context import active
from gtape.core.device import ArrayType
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.recording import Record
from gtape.core.source_location import resolve
from gtape.core.tensor import Tensor

Types = Sequence[ArrayType]


def _names(types: Types) -> str:
    return ", ".join(t.dtype.name for t in types)


def _equal(name: str, types: Types) -> ArrayType:
    first = types[0]
    for other in types[1:]:
        if other.dtype is not first.dtype:
            raise InvalidArgumentError(
                f"{name}: the inputs must have one dtype; got {_names(types)}. Tensors are never "
                f"promoted in silence: write tf.cast(x, tf.{first.dtype.name})")
    return first


def _only(allowed: Callable[[DType], bool], what: str) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        first = _equal(name, types)
        if not allowed(first.dtype):
            raise InvalidArgumentError(f"{name} takes {what}; got {_names(types)}. "
                                       f"Cast first: tf.cast(x, tf.float32)")
        return first

    return rule


def _bool_of(inner: Callable[[str, Types], ArrayType]) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        return inner(name, types).device.typed(dtypes.bool_)

    return rule


def _real_of(inner: Callable[[str, Types], ArrayType]) -> Callable[[str, Types], ArrayType]:
    def rule(name: str, types: Types) -> ArrayType:
        operand = inner(name, types)
        return operand.device.typed(operand.dtype.real_dtype)

    return rule


def _select(name: str, types: Types) -> ArrayType:
    if not types[0].dtype.is_bool:
        raise InvalidArgumentError(f"{name}: the condition must be bool; got {_names(types[:1])}. "
                                   f"Write a comparison such as x > 0")
    return _equal(name, types[1:])


def _make_complex(name: str, types: Types) -> ArrayType:
    part = _equal(name, types)
    if part.dtype.name not in ("float32", "float64"):
        raise InvalidArgumentError(f"{name} takes float32 or float64; got {_names(types)}")
    wide = dtypes.complex64 if part.dtype is dtypes.float32 else dtypes.complex128
    return part.device.typed(wide)


_any = _only(lambda d: True, "any dtype")
_number = _only(lambda d: d.is_differentiable or d.is_integer, "numbers")
# Strings are added too: one behind the other.
_sum = _only(lambda d: d.is_differentiable or d.is_integer or d.name == "string",
             "numbers or strings")
# Bools are multiplied too: that both hold.
_product = _only(lambda d: d.is_differentiable or d.is_integer or d.is_bool, "numbers")
_real = _only(lambda d: d.is_floating or d.is_integer, "real numbers")
_float = _only(lambda d: d.is_differentiable, "floating or complex tensors")
_complex = _only(lambda d: d.is_complex, "complex tensors")
_real_float = _only(lambda d: d.is_floating, "real floating tensors")
_integer = _only(lambda d: d.is_integer, "integers")
_logical = _only(lambda d: d.is_bool, "bools")

RULES: dict[str, Callable[[str, Types], ArrayType]] = {
    "any": _any,
    "number": _number,
    "sum": _sum,
    "product": _product,
    "real": _real,
    "float": _float,
    "complex": _complex,
    "real_float": _real_float,
    "integer": _integer,
    "logical": _logical,
    "compare": _bool_of(_real),
    "equal": _bool_of(_any),
    "test": _bool_of(_number),
    "magnitude": _real_of(_complex),
    "select": _select,
    "make_complex": _make_complex,
}


def _made_at(tensor: Tensor) -> str:
    """Where a tensor was made, if that was noted: by itself, or by a tape now recording."""
    origin = getattr(tensor, "_origin", None)
    site = origin[-2:] if origin else _recorded(tensor._k)
    return f" made at {resolve(*site)}" if site else ""


def _recorded(key: int) -> Any:
    """The (code, offset) of the step that made the value, from the tapes now recording."""
    for tape in active():
        if key and tape.is_tape:
            steps = [(r.outputs, (r.code, r.offset)) for r in map(Record.of, tape._records)]
            steps += [(outputs, site) for _, _, _, outputs, *site in tape._marks]
            for keys, site in steps:
                if key in keys:
                    return site
    return None


def same_device(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises InvalidArgumentError when tensors live on different devices."""
    first = tensors[0]
    for other in tensors[1:]:
        if other._t.device is not first._t.device:
            described = "; ".join(f"{t.spec} on {t.device}{_made_at(t)}" for t in (first, other))
            raise InvalidArgumentError(
                f"{name}: the inputs must live on one device; got {described}. Nothing is copied "
                f"between devices in silence: move one with x.gpu() or x.cpu()")
