"""Elementwise ops on devices that launch kernels: one formula, one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gtape.core.device import Array, ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Function
from gtape.core.recording import record_general
from gtape.core.tensor import EagerTensor, note_origin
from gtape.opdef.differentiate import inputs_read
from gtape.opdef.eager_source import vjp_slots
from gtape.opdef.scalar_graph import Expr

if TYPE_CHECKING:
    from gtape.opdef.elementwise import Elementwise

#: Python integers up to here are exact as the doubles that kernels take them as.
_EXACT = 1 << 53


class MapDefinition(NamedTuple):
    """What one launch computes: outputs in terms of inputs, with the types of both."""

    name: str
    outputs: tuple[Expr, ...]
    params: tuple[str, ...]
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]

    def on(self, maps: Any) -> Any:
        """Its map on a device; None where a scalar op in it has no CUDA text for these types."""
        return maps.make(self.name, self.outputs, self.params,
                         [t.dtype.np_dtype for t in self.types],
                         [t.dtype.np_dtype for t in self.results])


def forward_step(op: Elementwise, types: Sequence[ArrayType], out: ArrayType) -> MapDefinition:
    """The op itself."""
    return MapDefinition(op.name, (op.body(),), tuple(op.params), tuple(types), (out,))


def backward_step(op: Elementwise, types: Sequence[ArrayType], pairs: Sequence[tuple[int, Expr]],
                  cotangent: str, result: str) -> MapDefinition:
    """The cotangents of some inputs: `pairs` of position and expression, in terms of the op's
    inputs and of what is called `cotangent` and `result`."""
    out = op.out_type(types)
    named = {cotangent: out, result: out, **dict(zip(op.params, types))}
    reads = tuple(inputs_read([p for _, p in pairs]))
    wrt = " ".join(op.params[i] for i, _ in pairs)
    return MapDefinition(f"d {wrt} {op.name}", tuple(p for _, p in pairs), reads,
                         tuple(named[n] for n in reads), tuple(types[i] for i, _ in pairs))


def map_of(op: Elementwise, types: Sequence[ArrayType], out: ArrayType) -> Any:
    """The map of an elementwise op on inputs of these types; None where there is none."""
    key = (*types, out)
    try:
        return op.maps[key]
    except KeyError:
        pass
    maps = out.device.maps
    kernel = None if maps is None else forward_step(op, types, out).on(maps)
    return op.maps.setdefault(key, kernel)


def apply_map(op: Elementwise, out: ArrayType, arrays: Sequence[Array]) -> Array | None:
    """The op by a kernel; None where there is none for these arrays."""
    device = out.device
    if device.maps is None:
        return None
    kernel = map_of(op, [device.type_of(a.dtype) for a in arrays], out)
    return None if kernel is None else kernel(*arrays)[0]


def launch_op(op: Elementwise, like: ArrayType, args: Sequence[Any]) -> Any:
    """The op on tensors of type `like` and Python numbers, which are not copied to the device.

    NotImplemented where an argument is something else, or no kernel serves it.
    """
    numbers = 0
    for i, x in enumerate(args):
        if type(x) is not EagerTensor:
            if not _is_number(x, like):
                return NotImplemented
            numbers |= 1 << i
        elif x._t is not like:
            return NotImplemented
    out = _out_type(op, like)
    if out is None:
        return NotImplemented
    kernel = map_of(op, (like,) * len(args), out)
    if kernel is None:
        return NotImplemented
    arrays = [x._a if type(x) is EagerTensor else x for x in args]
    try:
        with like.device.scope():
            result = note_origin(EagerTensor(kernel.short(numbers)(*arrays)[0], out))
    except ValueError:
        op.infer([x.spec for x in args if type(x) is EagerTensor])
        raise
    record_general(op, tuple(args), (result,), ())
    return result


def _is_number(value: object, like: ArrayType) -> bool:
    return like.dtype.is_floating and (type(value) is float or (
        type(value) is int and -_EXACT < value < _EXACT))


def _out_type(op: Elementwise, like: ArrayType) -> ArrayType | None:
    try:
        return op.out_type(op.operand_types(like))
    except InvalidArgumentError:
        return None


#: What launches; None until asked for, False where there is none.
Launch: TypeAlias = Function | bool | None


class Launches:
    """How an op computes on a GPU's tensors of one type, and is pulled back there."""

    __slots__ = ("by_numbers", "vjp_slots")

    def __init__(self, arity: int) -> None:
        #: By the mask of arguments that are Python numbers.
        self.by_numbers: list[Launch] = [None] * (1 << arity)
        self.vjp_slots = vjp_slots(arity)


def add_launches(op: Elementwise, like: ArrayType) -> Launches:
    """The entry of `op.launches` for a type, nothing of it made yet."""
    return op.launches.setdefault(like, Launches(len(op.params)))


def find_launch(op: Elementwise, like: ArrayType, numbers: int) -> Launch:
    """The launch for arguments of which those in the mask `numbers` are Python numbers; False
    where the op has to go another way."""
    launch: Launch = False
    if like.device.alone and like.device.maps is not None and (
            not numbers or like.dtype.is_floating):
        out = _out_type(op, like)
        # The printed function gives its result the type of the operands: comparisons go the other
        # way.
        kernel = map_of(op, op.operand_types(like), out) if out is like else None
        if kernel is not None:
            launch = kernel.short(numbers)
    op.launches[like].by_numbers[numbers] = launch
    return launch
