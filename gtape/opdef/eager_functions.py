"""The Python functions of elementwise ops: a fast way for the common case, the op for the rest.

The fast way serves float16, float32 and float64 tensors in host memory, tensors on a GPU whose
kernel is at hand, all of one type, and Python numbers beside them. It gives the same results and
records as `Elementwise.apply`; a test holds it to that. One template prints it for any number of
operands; for two it is `make`, which gives the function of one op:

    def function(x, y, name=None):
        …                                  # which are tensors, which numbers; else the slow path
        result._a = run(compute, a_x, a_y)
        …                                  # and for each tape that knows an operand, its record
        return result

Printed and not a loop over operands, because a loop would cost several times what an op on a small
tensor does. A text is compiled once; an op's function is a closure of that code.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeOperand, elementwise
from gtape.core.context import active, here, new_key
from gtape.core.convert import convert, convert_like
from gtape.core.device import ignored_context, others
from gtape.core.dtypes import bool_
from gtape.core.op import Function
from gtape.core.recording import CUT, UNKNOWN, _seen_globals, mark, user_of
from gtape.core.tensor import ComputedFrom, EagerTensor, Readable, Tensor, note_origin
from gtape.core.variable import Variable
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.elementwise_vjp import add_launches, find_launch, launch_op, vjp_slot, vjp_slots
from gtape.opdef.scalar_graph import Expr, is_expr

# What the text may rely on: `slow_path` is right for everything, so whatever is rare is refused.
# Types are compared by `is`; shapes are not looked at, since NumPy does it anyway and raises, and
# `try` costs nothing where nothing is raised. Nothing is called that can be written out: a Python
# call takes 0.05 to 0.1 us, and the whole op, forward and backward, 1 to 2.

_OPERANDS = ("x", "y", "z")
_BEFORE = """
def make(op, compute, host_slots, takes_numbers):
    launches_of, name_of_op = op.launches.get, op.name

    def function({params}, name=None):
"""
# `new` and the three attributes take two thirds of the time of `EagerTensor(array, type)`, which
# would enter `__init__`.
_COMPUTE = """
result = new(EagerTensor)
if not array_type.fast:
    # One kernel, found once for each type and for where the numbers stand.
    launches = launches_of(array_type) or add_launches(op, array_type)
    launch = launches.by_numbers[{numbers}]
    if launch is None:
        launch = find_launch(op, array_type, {numbers})
    if not launch:
        # The host's integers, bfloat16 and complex numbers; a GPU without such a kernel.
        return slow_path(op, ({operands},))
    try:
        result._a = launch({arrays})[0]
    except (ValueError, OverflowError, MemoryError):
        # As below: what does not fit is said there.
        return slow_path(op, ({operands},))
    slots = launches.vjp_slots
else:
    {numbers_refused}
    slots = host_slots
    try:
        result._a = ignored_context.run(compute, {arrays})
    except (ValueError, OverflowError, MemoryError):
        # Shapes or numbers that do not fit, or no memory: there is the error that says so.
        return slow_path(op, ({operands},))
    except RuntimeError:
        # A finalizer or signal handler that interrupted an op finds its context entered.
        result._a = ignored_context.call(compute, {arrays})
    if others:
        # Where several devices are in use, a result remembers where it was made.
        note_origin(result)
result._t = array_type
result._k = 0
stack = active()
if not stack:
    return result
frame = _getframe(1)
# Mostly the module that called last calls again, and is known to be no library's.
if frame.f_globals is not seen[0]:
    frame = user_of(frame)
for tape in stack:
    if not tape.is_tape:
        # A forward accumulator, a batch, a check of numbers: it sees every op.
        tape.observe(op, ({operands},), (result,), ())
        continue
    known = tape._known
"""
# A mark gives the operands keys, which the next tape may know.
_NOT_RECORDED = """
mark(tape, {kind}, name_of_op, ({operands},), (result,), frame)
{keys_again}
continue
"""
# The layout of a record is that of `core.recording`; its payload that of `VjpProgram.entry`.
# A record is a tuple display, which takes a quarter of the time of a slotted object and a sixth of
# a NamedTuple's.
_RECORD = """
    vjp = slots[{slot}] or op.fill_vjp_slot(slots, array_type, {slot})
    # Declared to have no gradient, such as floor: a mark tells `explain` where it ended.
    if not vjp.backward:
        {cut}
    key = result._k
    if not key:
        result._k = key = new_key()
    known.add(key)
    tape._records.append(
        (vjp.backward, key, frame.f_code, frame.f_lasti, op, {keys}, {payload}))
return result
"""
_BINDING = """
    return function
"""


def _filled(template: str, **blocks: str) -> list[str]:
    """The template's lines; a block of several lines, or of none, stands at its line's indent."""
    lines: list[str] = []
    for line in template.strip("\n").split("\n"):
        name = line.strip()
        if name.startswith("{") and name.endswith("}") and name[1:-1] in blocks:
            indent = line[: line.index("{")]
            lines += [indent + part for part in blocks[name[1:-1]].split("\n") if part]
        else:
            lines.append(line.format(**blocks) if "{" in line else line)
    return lines


def _indented(lines: Sequence[str], by: int = 1) -> list[str]:
    return ["    " * by + line for line in lines]


class _Template:
    """The text for `arity` operands; with `select` the first of three is a condition."""

    def __init__(self, arity: int, select: bool) -> None:
        self.params = _OPERANDS[:arity]
        #: The operands of the result's type, by their bits in masks.
        self.bits = {p: 1 << i for i, p in enumerate(self.params) if not (select and i == 0)}
        self.arity, self.select = arity, select
        self.all = ", ".join(self.params)
        self.refuse = f"return slow_path(op, ({self.all},))"
        #: One operand's array and key are read where they are needed, and not before.
        self.arrays = {p: "x._a" if arity == 1 else f"a_{p}" for p in self.params}

    def text(self) -> str:
        several = self.arity > 1
        again = "\n".join(f"if not numbers & {b}: k_{p} = {p}._k" for p, b in self.bits.items())
        not_recorded = {kind: "\n".join(_filled(
            _NOT_RECORDED, kind=kind, operands=self.all, keys_again=again if several else ""))
            for kind in ("UNKNOWN", "CUT")}
        shapes = [f"s_{p}" if p in self.bits else "None" for p in self.params] if several else []
        kept = [f"{p} if vjp.keeps_{p} else None" for p in self.params]
        body = [*self._condition(), *self._operands(list(self.bits), False, 0), *_filled(
            _COMPUTE, operands=self.all, arrays=", ".join(self.arrays.values()),
            numbers="numbers" if several else "0",
            numbers_refused=f"# A number has to become an array of the other's dtype first.\n"
            f"if numbers and not takes_numbers:\n    {self.refuse}"
            if several else "")]
        if several:
            body.append(f"    {' = '.join(f's_{p}' for p in self.bits)} = None")
        body += _indented(self._wanted(list(self.bits), (), not_recorded["UNKNOWN"]))
        body += _filled(
            _RECORD, slot="slot" if several else str(vjp_slot(1, 0b1, 0, True)),
            keys="keys" if several else "k_x", cut=not_recorded["CUT"],
            payload=", ".join([*shapes, *kept, "result if vjp.keeps_result else None"]))
        return "\n".join([*_filled(_BEFORE, params=self.all), *_indented(body, 2),
                          *_filled(_BINDING)]) + "\n"

    def _condition(self) -> list[str]:
        if not self.select:
            return []
        return ["if type(x) is not EagerTensor or x._t.dtype is not bool_:",
                f"    {self.refuse}", "a_x = x._a"]

    def _operands(self, rest: list[str], typed: bool, numbers: int) -> list[str]:
        """Bind arrays, keys and `array_type`, or refuse: tensors of one type, or numbers beside
        them. Of three operands the first must be a tensor, since two numbers that meet have the
        dtype of Python's and not of the array beside them."""
        if not rest:
            same_place = ["if x._t.device is not array_type.device:", f"    {self.refuse}"]
            return (same_place if self.select else []) + (
                [f"numbers = {numbers}"] if self.arity > 1 else [])
        p, later = rest[0], rest[1:]
        tensor = ([f"if {p}._t is not array_type:", f"    {self.refuse}"] if typed
                  else [f"array_type = {p}._t"])
        if self.arity > 1:
            tensor += [f"a_{p} = {p}._a", f"k_{p} = {p}._k"]
        tensor += self._operands(later, True, numbers)
        if not typed and len(later) != 1:
            return [f"if type({p}) is not EagerTensor:", f"    {self.refuse}", *tensor]
        return [f"if type({p}) is EagerTensor:", *_indented(tensor),
                f"elif type({p}) is float or type({p}) is int:",
                f"    a_{p} = {p}", f"    k_{p} = 0",
                *_indented(self._operands(later, typed, numbers | self.bits[p])),
                "else:", f"    {self.refuse}"]

    def _wanted(self, rest: list[str], wanted: tuple[str, ...], unknown: str) -> list[str]:
        """Decide which operands the tape knows: `keys`, `slot`, and shapes where one was stretched
        to the result's, whose cotangent is summed."""
        if self.arity == 1:
            return ["k_x = x._k", "if k_x not in known:", *_indented(unknown.split("\n"))]
        if rest:
            p, later = rest[0], rest[1:]
            return [f"if k_{p} in known:", *_indented(self._wanted(later, (*wanted, p), unknown)),
                    "else:", *_indented(self._wanted(later, wanted, unknown))]
        if not wanted:
            return unknown.split("\n")
        # A leaf of the tree of `if`s, one for each set of operands: it knows the masks as numbers,
        # where a loop would add them up at every call.
        keys = ", ".join(f"k_{p}" for p in wanted)
        return [f"keys = {f'({keys})' if len(wanted) > 1 else keys}", *self._slot(wanted)]

    def _slot(self, wanted: tuple[str, ...]) -> list[str]:
        mask = sum(self.bits[p] for p in wanted)
        others = [p for p in self.params if p not in wanted]
        numbers = sum(self.bits.get(p, 0) for p in others)
        compared = [f"a_{p}.shape" for p in wanted]
        if others:
            compared.append("result._a.shape")
        test, lines, word = " == ".join(compared), [], "if"
        if len(wanted) == 1 and not self.select:
            # Beside numbers alone nothing is stretched, and reading a shape makes a tuple.
            lines += [f"if {'numbers' if self.arity == 2 else f'numbers == {numbers}'}:",
                      f"    slot = {vjp_slot(self.arity, mask, numbers, True)}"]
            word = "elif"
            if self.arity == 2:
                test = f"not a_{others[0]}.ndim or {test}"
        partly = f" | numbers << {self.arity}" if self.arity > 2 and numbers else ""
        return [*lines, f"{word} {test}:",
                f"    slot = {vjp_slot(self.arity, mask, 0, True)}{partly}", "else:",
                f"    slot = {vjp_slot(self.arity, mask, 0, False)}{partly}",
                *[f"    s_{p} = a_{p}.shape" for p in wanted]]


def source(arity: int, select: bool) -> str:
    """The text of `make` for ops of so many operands."""
    return _Template(arity, select).text()


#: What the text names. It is a library's, so its frames are no user's.
_GLOBALS = {
    "__package__": __package__, "EagerTensor": EagerTensor, "new": object.__new__,
    "ignored_context": ignored_context, "others": others, "note_origin": note_origin,
    "bool_": bool_, "add_launches": add_launches, "find_launch": find_launch, "active": active,
    "_getframe": sys._getframe, "seen": _seen_globals, "user_of": user_of, "mark": mark,
    "UNKNOWN": UNKNOWN, "CUT": CUT, "new_key": new_key}


def operands(name: str, args: Sequence[object]) -> list[Tensor]:
    """The arguments as tensors; the first tensor among them sets dtype and device of the rest."""
    like = None
    for arg in args:
        if isinstance(arg, (Tensor, Readable)):
            like = arg._t
            break
    if like is None:
        tensors = [convert(args[0])]
        for arg in args[1:]:
            tensors.append(convert_like(arg, tensors[0]._t, name))
        return tensors
    return [convert_like(arg, like, name) for arg in args]


def _operands(op: Elementwise, args: Sequence[object]) -> list[Tensor]:
    """`operands`; a condition has a dtype of its own."""
    if op.types != "select":
        return operands(op.name, args)
    branches = operands(op.name, args[1:])
    return [convert(args[0], None, branches[0]._t.device), *branches]


def slow_path(op: Elementwise, args: Sequence[Any]) -> Any:
    """The op on any arguments: expressions build expressions, the rest become tensors."""
    for a in args:
        if type(a) is EagerTensor:
            if a._t.device.maps is not None:
                result = launch_op(op, a._t, args)
                if result is not NotImplemented:
                    return result
            break
    if is_expr(args):
        graph = next(a for a in args if type(a) is Expr).graph
        return op.expression(graph, [a if type(a) is Expr else graph.constant(a) for a in args])
    if any(isinstance(a, Variable) for a in args):
        return _read_first(op, args)
    try:
        given = _operands(op, args)
    except CompositeOperand as refusal:
        return elementwise(refusal, op, args)
    return op.apply(given)


def _read_first(op: Elementwise, args: Sequence[object]) -> Any:
    """The op on variables: their values go the fast way if they can."""
    read = [a._read_() if isinstance(a, Variable) else a for a in args]
    if op.python is not None and all(
            type(a) is EagerTensor or type(a) is float or type(a) is int for a in read):
        result = op.python(*read)
    else:
        try:
            given = _operands(op, read)
        except CompositeOperand as refusal:
            return elementwise(refusal, op, read)
        result = op.apply(given)
    if not active():
        note_variable(result, args)
    return result


def note_variable(result: object, args: Sequence[object]) -> None:
    """Remember that a tensor was computed from a Variable outside every tape: `x = x + 1`."""
    for arg in args:
        if isinstance(arg, Variable) and type(result) is EagerTensor:
            result._origin = ComputedFrom(arg._resource_(), *here())
            return


def specialised(op: Elementwise, compute: Function, params: tuple[str, ...],
                takes_numbers: bool = False) -> Function:
    """The op's function, `f(x, …, name=None)`, with the fast way of one, two or three operands.

    `compute` is the op on NumPy's floating arrays. Where it `takes_numbers` it gives a Python
    number among its arguments the dtype of the array beside it.
    """
    arity = len(params)
    make = _factory(arity, op.types == "select")
    return with_signature(make(op, compute, vjp_slots(arity), takes_numbers), op, params)


@functools.cache
def _factory(arity: int, select: bool) -> Callable[..., Function]:
    """`make`, compiled: a thousandth of a second, once for each arity."""
    text, file = source(arity, select), f"<gtape function of {arity}{' select' * select}>"
    # Tracebacks show its lines.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    defined: dict[str, Function] = {}
    exec(compile(text, file, "exec"), _GLOBALS | {"slow_path": slow_path}, defined)
    return defined["make"]


def unspecialised(op: Elementwise, params: tuple[str, ...]) -> Function:
    """The op's function, always by `Elementwise.apply`."""
    if len(params) == 1:
        def function(x: Any, name: str | None = None) -> Any:
            return slow_path(op, (x,))
    elif len(params) == 2:
        def function(x: Any, y: TensorLike, name: str | None = None) -> Any:  # type: ignore[misc]
            return slow_path(op, (x, y))
    else:
        def function(x: Any, y: Any, z: Any, name: str | None = None) -> Any:  # type: ignore[misc]
            return slow_path(op, (x, y, z))
    return with_signature(function, op, params)


def with_signature(function: Function, op: Elementwise, params: tuple[str, ...]) -> Function:
    """`function` with the op's name, documentation and TensorFlow's parameter names."""
    code = function.__code__
    names = (*params, *code.co_varnames[len(params):])
    function.__code__ = code.replace(co_varnames=names)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    function.op = op  # type: ignore[attr-defined]
    op.python = function
    function.__module__ = "gtape"
    return function
