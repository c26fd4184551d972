"""The backward of an elementwise op for a set of inputs, and its launch where there are kernels.

Two forms of the same expressions: one generated function on bare arrays that does the whole step,
and one that applies an `ElementwiseVjp` for each input to tensors, so that other tapes record them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gtape.autodiff.backward import Cotangent, Grads, add_to, failing, missing_gradient, override
from gtape.core.device import Array, ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.installed import installed
from gtape.core.op import Function
from gtape.core.recording import (
    INPUT_KEYS,
    PAYLOAD,
    Backward,
    Recorded,
    RecordTuple,
    record_general,
)
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.numpy_code import LARGE, Printer, define, fits, schedule, sum_to
from gtape.opdef.scalar_graph import Expr, inputs_read, topological, unused_name

if TYPE_CHECKING:
    from gtape.opdef.elementwise import Elementwise, ElementwiseVjp


class VjpSlot:
    """The pullback of a `VjpProgram`, and what a record keeps for it; None where no gradient
    flows. Read by attribute, which costs no more than a tuple's place."""

    __slots__ = ("backward", "keeps_result", "keeps_x", "keeps_y", "keeps_z")

    def __init__(self, backward: Function | None, reads: Sequence[bool]) -> None:
        self.backward = backward
        self.keeps_x, self.keeps_y, self.keeps_z = (*reads[:-1], False, False)[:3]
        self.keeps_result = reads[-1]


def vjp_slot(arity: int, wanted: int, numbers: int, same_shape: bool) -> int:
    """Where a list of `vjp_slots` has the pullback to the inputs in the mask `wanted`, with those
    in `numbers` Python numbers, and none of `wanted` broadcast if `same_shape`."""
    return wanted | numbers << arity | same_shape << 2 * arity


def vjp_slots(arity: int) -> list[VjpSlot | None]:
    """No pullback made yet."""
    # Two bits for each operand, wanted and a number, and one for equal shapes: 128 places for
    # three.
    return [None] * (2 << 2 * arity)


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
    # None is an entry too: that there is no kernel is found out once.
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


class _TensorStep(NamedTuple):
    """How a cotangent of one input is made of tensors: by an op, of g and what the record keeps.

    `op` is None where the cotangent is g; `picks` has places in the record, None for g; `shape_at`
    is the place of the shape that it is summed to, if the input may have been broadcast.
    """

    op: ElementwiseVjp | None
    order: int
    picks: list[int | None]
    shape_at: int | None


class VjpProgram:
    """What a record needs: the backward, and which inputs, and last y, it `reads`.

    Args:
        backward: the step on bare arrays, whose `tensors` is the step on tensors.
        build: gives the step on arrays in place of `backward`, when an array is pulled back: a
            trace records thousands of steps and pulls tensors back only.
    """

    __slots__ = ("_arity", "_backward", "_build", "_wrt", "reads")

    def __init__(self, backward: Backward, arity: int, wrt: Sequence[int], reads: Sequence[bool],
                 build: Callable[[], Backward] | None = None) -> None:
        self._backward = backward
        self._build = build
        self._arity = arity
        self._wrt = tuple(wrt)
        self.reads = tuple(reads)

    @property
    def backward(self) -> Backward:
        """The step on bare arrays."""
        build = self._build
        if build is not None:
            # In this order: a thread that sees no `_build` any more finds the array form in
            # `_backward`. Two that build at once build the same.
            self._backward = build()
            self._build = None
        return self._backward

    def entry(self, inputs: tuple[Tensor, ...], y: Tensor) -> Recorded:
        """(backward, input keys, payload), laid out as `opdef.eager_functions` does."""
        backward = self.backward if type(y) is EagerTensor else self._backward
        kept = [v if read else None for v, read in zip((*inputs, y), self.reads)]
        wrt = self._wrt
        in_keys = inputs[wrt[0]]._k if len(wrt) == 1 else tuple([inputs[i]._k for i in wrt])
        # Of one operand no shape is kept: its cotangent has the shape of the result already.
        if self._arity == 1:
            return backward, in_keys, kept
        shapes: list[tuple[int, ...] | None] = [None] * self._arity
        for i in wrt:
            x = inputs[i]
            shapes[i] = x._a.shape if type(x) is EagerTensor else x.spec.shape
        return backward, in_keys, shapes + kept


def build_vjp_program(op: Elementwise, types: tuple[ArrayType, ...], wanted: int, numbers: int,
                      same_shape: bool) -> VjpProgram | None:
    """The program of `op` on inputs of these types; see `Elementwise.vjp_program`."""
    arity = len(op.params)
    if op.nondifferentiable:
        return None
    registered = override(op)
    wrt = [i for i in range(arity) if wanted >> i & 1]
    if registered is not None:
        return VjpProgram(registered, arity, wrt, [True] * (arity + 1))
    if not op.has_gradient:
        return VjpProgram(missing_gradient(op), arity, wrt, [False] * (arity + 1))
    complex_ = any(t.dtype.is_complex for t in types)
    try:
        cotangents = op.input_cotangents(wrt, complex_)
    # An op inside a formula: recorded, and the error waits for who asks for a gradient.
    except LookupError as error:
        return VjpProgram(failing(error), arity, wrt, [False] * (arity + 1))
    pairs = [(i, p) for i, p in zip(wrt, cotangents) if p is not None]
    if not pairs:
        return _unconnected(arity, wrt)
    return _Builder(op, types, wrt, pairs, numbers, same_shape).program()


def _unconnected(arity: int, wrt: Sequence[int]) -> VjpProgram | None:
    """Inputs that the result does not depend on smoothly: recorded, and nothing comes back."""
    def backward(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
        return None

    backward.tensors = backward  # type: ignore[attr-defined]
    return VjpProgram(backward, arity, wrt, [False] * (arity + 1))


class _Builder:
    def __init__(self, op: Elementwise, types: Sequence[ArrayType], wrt: Sequence[int],
                 pairs: list[tuple[int, Expr]], numbers: int, same: bool) -> None:
        self._op, self._types, self._wrt, self._pairs = op, types, wrt, pairs
        self._arity = len(op.params)
        self._numbers, self._same = numbers, same
        self._g, self._y = unused_name("g", op.params), unused_name("y", op.params)
        self._names = [*op.params, self._y]
        used = inputs_read([p for _, p in pairs])
        self._reads = [n in used for n in self._names]

    def program(self) -> VjpProgram:
        tensors = self._tensors()

        def on_arrays() -> Backward:
            device = self._types[0].device
            backward = self._launched() or self._arrays()
            if not device.alone:
                backward = _scoped(backward, device.scope)
            backward.tensors = tensors  # type: ignore[attr-defined]
            return backward

        return VjpProgram(tensors, self._arity, self._wrt, self._reads, on_arrays)

    def _kept_at(self, position: int) -> int:
        """Where the record keeps input `position` (or y, last)."""
        return PAYLOAD + position + (self._arity if self._arity > 1 else 0)

    def _key_text(self, index: int) -> str:
        order = self._wrt.index(index)
        return f"r[{INPUT_KEYS}]" if len(self._wrt) == 1 else f"r[{INPUT_KEYS}][{order}]"

    def _kept(self) -> list[str]:
        """Assignments of what the record keeps to the names in the expressions."""
        lines = []
        for position, name in enumerate(self._names):
            if self._reads[position]:
                number = position < self._arity and self._numbers >> position & 1
                lines.append(f"{name} = r[{self._kept_at(position)}]" + ("" if number else "._a"))
        return lines

    def _launched(self) -> Backward | None:
        """The whole step as one launch; None where the device has no kernel for it."""
        maps = self._types[0].device.maps
        if maps is None:
            return None
        if not self._same and self._arity > 1:
            return self._launched_apart(maps)
        # Where the cotangent is g itself (both of x + y) no kernel copies it: arrays are handed on,
        # since nothing ever writes to a cotangent.
        passed = [i for i, p in self._pairs if p.is_input and p.value == self._g]
        computed = [(i, p) for i, p in self._pairs if i not in passed]
        lines, names = self._kept(), {}
        if computed:
            step = backward_step(self._op, self._types, computed, self._g, self._y)
            names["launch"] = step.on(maps)
            if names["launch"] is None:
                return None
            lines.append(f"{', '.join(f'p{i}' for i, _ in computed)}, = "
                         f"launch({', '.join(step.params)})")
        lines += [f"p{i} = {self._g}" for i in passed]
        return self._defined(lines, names)

    def _launched_apart(self, maps: Any) -> Backward | None:
        """One launch for each input: what was broadcast is summed on the way."""
        lines, names = self._kept(), {}
        for i, part in self._pairs:
            step = backward_step(self._op, self._types, [(i, part)], self._g, self._y)
            whole = step.on(maps)
            if whole is None:
                return None
            # The formula is computed inside the reduction, so that the cotangent of full size,
            # which would be written and read once more, never is in memory.
            names[f"sum{i}"] = maps.summed(whole)
            call = f"p{i} = sum{i}(r[{PAYLOAD + i}], {', '.join(step.params)})"
            if part.is_input and part.value == self._g:
                call = f"p{i} = {self._g}\nif p{i}.shape != r[{PAYLOAD + i}]: {call}"
            lines += call.split("\n")
        return self._defined(lines, names | {"sum_to": sum_to})

    def _defined(self, lines: list[str], names: dict[str, Any]) -> Backward:
        """The backward function: `lines` that leave the parts in p0, p1 …, then their storing."""
        for index, _ in self._pairs:
            lines += self._store(index)
        maps = self._types[0].device.maps
        if maps is not None:
            names["plus"] = maps.added
        source = f"def backward(grads, {self._g}, r):\n" + "".join(f"    {x}\n" for x in lines)
        return define(source, "backward", names)

    def _arrays(self) -> Backward:
        xp = self._types[0].xp
        printer = Printer(xp)
        assigned, texts = printer.lines([p for _, p in self._pairs])
        body = [f"{line}" for line in assigned]
        for (index, _), text in zip(self._pairs, texts):
            body.append(f"p{index} = {text}")
            if self._types[index].dtype.name == "bfloat16":
                # NumPy makes float32 of a bfloat16 array and a Python number.
                printer.names[f"dtype{index}"] = self._types[index].dtype.np_dtype
                body.append(f"p{index} = p{index}.astype(dtype{index}, copy=False)")
        printer.names["sum_to"] = sum_to
        return self._defined([*self._kept(), *self._guarded(body, printer)], printer.names)

    def _store(self, index: int) -> list[str]:
        lines = []
        if self._arity > 1 and not self._same:
            shape = f"r[{PAYLOAD + index}]"
            # Compared in the text: most operands were not stretched, and a call that finds nothing
            # to do costs as much as a small tensor's arithmetic.
            lines.append(f"if p{index}.shape != {shape}: p{index} = sum_to(p{index}, {shape})")
        if len(self._wrt) == 1:
            # `backward_freeing` hands it on to the record before without a detour through `grads`.
            lines.append(f"return p{index}")
        else:
            lines += [f"k = {self._key_text(index)}",
                      f"grads[k] = {self._sum('grads[k]', f'p{index}')} if k in grads "
                      f"else p{index}"]
        return lines

    def _sum(self, a: str, b: str) -> str:
        return f"{a} + {b}" if self._types[0].device.maps is None else f"plus({a}, {b})"

    def _guarded(self, body: list[str], printer: Printer) -> list[str]:
        """`body`, with large arrays going block by block where the scalar ops allow it."""
        steps = [n for n in topological([p for _, p in self._pairs]) if n.op is not None]
        # A formula of one step has no intermediate that could stay in the cache.
        if not self._types[0].fast or len(steps) <= len(self._pairs):
            return body
        schedules = [(i, schedule(p, inputs_read([p])), inputs_read([p])) for i, p in self._pairs]
        if any(blocks is None for _, blocks, _ in schedules):
            return body
        reads = [n for n in self._names if self._reads[self._names.index(n)]]
        printer.names["fits"] = fits
        every = ", ".join([self._g, *reads])
        # A schedule has one result, so steps that two cotangents share are computed for each.
        lines = [f"if {self._g}.size >= {LARGE} and fits(({every},)):"]
        for index, blocks, names in schedules:
            printer.names[f"blocks{index}"] = blocks
            lines.append(f"    p{index} = blocks{index}.run(({', '.join(names)},))")
        return [*lines, "else:", *(f"    {line}" for line in body)]

    def _tensors(self) -> Backward:
        # By the type of the cotangent: the host's floats share one program (see `_types_for`).
        prepared: dict[ArrayType, list[_TensorStep]] = {}

        def backward(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
            keys = record[INPUT_KEYS]
            keys = keys if type(keys) is tuple else (keys,)
            steps = prepared.get(g._t)
            if steps is None:
                types = self._types_for(g._t)
                steps = prepared[g._t] = [self._step(i, part, g._t, types)
                                          for i, part in self._pairs]
            for op, order, picks, shape_at in steps:
                part = g if op is None else op.apply_mixed(
                    [g if at is None else record[at] for at in picks])
                if shape_at is not None and part.spec.shape != record[shape_at]:
                    part = installed.sum_to(part, record[shape_at])
                add_to(grads, keys[order], part)

        backward.tensors = backward  # type: ignore[attr-defined]
        return backward

    def _types_for(self, g_type: ArrayType) -> Sequence[ArrayType]:
        """The input types for a cotangent of `g_type`: programs of host floats serve all of them,
        a condition beside them stays what it is."""
        # `eager_functions` has one list of programs for float16, float32 and float64 on the host,
        # whose array form is the same NumPy; ops on tensors have types, so they are chosen here.
        floats = {t for t in self._types if t.fast}
        if not g_type.fast or len(floats) != 1:
            return self._types
        return [g_type if t.fast else t for t in self._types]

    def _step(self, index: int, part: Expr, g_type: ArrayType, types: Sequence[ArrayType],
              ) -> _TensorStep:
        names = inputs_read([part])
        named = {self._g: g_type, self._y: g_type, **dict(zip(self._op.params, types))}
        op = None if part.is_input and part.value == self._g else self._op.derivative(
            index, part, {n: named[n] for n in names}, types[index])
        picks = [None if n == self._g else self._kept_at(self._names.index(n)) for n in names]
        shape_at = PAYLOAD + index if self._arity > 1 and not self._same else None
        return _TensorStep(op, self._wrt.index(index), picks, shape_at)


def _scoped(backward: Backward, scope: Callable[[], AbstractContextManager[Any]],
            ) -> Backward:
    """`backward`, on the device where its arrays are."""
    def run(grads: Grads, g: Cotangent, record: RecordTuple) -> Array | None:
        with scope():
            return backward(grads, g, record)

    return run
