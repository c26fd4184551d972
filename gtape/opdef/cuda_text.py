"""Expressions as C++: the body of a kernel for one element.

Every node becomes a `const` of its own; the compiler sees through them. Numbers of two bytes are
computed as float. A chain of arithmetic keeps the float from one node to the next; where something
looks at a number, it is the number of two bytes (`rounded` in the kernels): scalar ops whose
results jump take such operands, and what is written out and read on is rounded first. With `every`
no node keeps more than its dtype has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from gtape.core.dtypes import FLOATS
from gtape.opdef.scalar_graph import Expr, Number, topological

#: The C++ name of each dtype in kernels.
C_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int",
    "uint64": "unsigned long long", "float16": "half", "bfloat16": "bfloat16", "float32": "float",
    "float64": "double"}
#: Bytes of each C++ type of `C_TYPES`.
C_SIZES = {c: 1 if name == "bool" else int("".join(filter(str.isdigit, name))) // 8
           for name, c in C_TYPES.items()}
#: The floats of two bytes, which are computed as float.
NARROW = ("float16", "bfloat16")
_NUMBER = re.compile(r"(?<![\w.])\d+\.?\d*(?:[eE][-+]?\d+)?")


def compute_dtype(dtype: str) -> str:
    """The dtype in which values of `dtype` are computed."""
    return "float32" if dtype in NARROW else dtype


def rounded(text: str, dtype: str) -> str:
    """A C++ float as the nearest one that a dtype of two bytes has."""
    return f"rounded<{C_TYPES[dtype]}>({text})"


def single(text: str, given: str, dtype: str) -> str:
    """A C++ number of the dtype `given` such that narrowing it to float, and on to `dtype`, rounds
    as narrowing it at once does. bfloat16 is rounded twice, as in ml_dtypes and TensorFlow."""
    # Rounded to odd, the float remembers in its last bit that something was cut off, so that the
    # second rounding sees no false tie. That takes two bits more than the result has: 24 for 11.
    return f"to_odd({text})" if (given, dtype) == ("float64", "float16") else text


def looked_at(body: Expr) -> set[str]:
    """The names of the inputs that a formula's ops take rounded."""
    return {a.value for n in topological([body]) if n.op is not None and n.op.jumps
            for a in n.args if a.is_input}


def servable(outputs: Sequence[Expr], dtypes: Mapping[str, str]) -> bool:
    """Whether all ops of the expressions have C++ text for inputs of these dtypes."""
    if any(d not in C_TYPES for d in dtypes.values()):
        return False
    kinds = _dtypes_of(topological(outputs), dtypes)
    for node in topological(outputs):
        if node.op is None:
            continue
        operands = [kinds[id(a)] for a in node.args]
        whole = any(d is not None and d not in FLOATS and d != "bool" for d in operands)
        if not node.op.cuda or (whole and not node.op.integers):
            return False
    return True


def _dtypes_of(order: Sequence[Expr], inputs: Mapping[str, str]) -> dict[int, str | None]:
    """The compute dtype of each node; None for a constant, which takes its neighbours'."""
    kinds: dict[int, str | None] = {}
    for node in order:
        if node.is_input:
            kinds[id(node)] = compute_dtype(inputs[node.value])
        elif node.op is None:
            kinds[id(node)] = None
        elif node.op.makes_bool:
            kinds[id(node)] = "bool"
        else:
            kinds[id(node)] = _operand_dtype(node, kinds)
    return kinds


def _operand_dtype(node: Expr, kinds: Mapping[int, str | None]) -> str | None:
    """The dtype that a node's operands share; the condition of a choice is not one of them."""
    operands = node.args[1:] if node.op.types == "select" else node.args
    return next((kinds[id(a)] for a in operands if kinds[id(a)] is not None), None)


def _narrow_of(order: Sequence[Expr], inputs: Mapping[str, str], default: str) -> dict[int, str]:
    """The dtype of each node that is one of `NARROW`."""
    narrow: dict[int, str] = {}
    for node in order:
        dtype = inputs[node.value] if node.is_input else None
        if node.op is not None and not node.op.makes_bool:
            dtype = _narrow_operand(node, narrow)
            if dtype is None and all(a.is_constant for a in node.args):
                dtype = default
        if dtype in NARROW:
            narrow[id(node)] = dtype
    return narrow


def _narrow_operand(node: Expr, narrow: Mapping[int, str]) -> str | None:
    """The dtype of two bytes that an op's operands have, if they do."""
    return next((narrow[id(a)] for a in node.args if id(a) in narrow), None)


#: The variables of nodes that were written before: by id, and whether they are rounded.
Known = dict[tuple[int, bool], str]


class CudaPrinter:
    """The statements that compute `outputs` from C++ variables."""

    def __init__(self, outputs: Sequence[Expr], dtypes: Mapping[str, str],
                 variables: Mapping[str, str], default: str, prefix: str = "v",
                 known: Known | None = None, *, every: bool = False) -> None:
        """`dtypes` and `variables` say of each input its dtype and the C++ variable that holds it
        in its compute dtype, rounded; `default` is the dtype where only constants take part. The
        variables made are called `prefix` and a number; `known` has those of nodes made before, and
        those made here are added to it. With `every` each node is rounded to its dtype."""
        self._prefix = prefix
        self._known = {} if known is None else known
        self._order = topological(outputs)
        self._dtypes = _dtypes_of(self._order, dtypes)
        self._default = compute_dtype(default)
        self._narrow = _narrow_of(self._order, dtypes, default)
        self._every = every
        self._rounded = {id(n) for n in self._order
                         if n.op is not None and id(n) in self._narrow}
        if self._rounded and not every:
            self._rounded &= self._looked_at(outputs)
        self._names = {id(n): variables[n.value] for n in self._order if n.is_input}
        self._outputs = outputs

    def _looked_at(self, outputs: Sequence[Expr]) -> set[int]:
        """The nodes that ops take rounded, and the outputs that other nodes read."""
        read = {id(a) for n in self._order for a in n.args}
        inspected = {id(a) for n in self._order if n.op is not None and n.op.jumps
                     for a in n.args}
        return inspected | (read & {id(o) for o in outputs})

    def lines(self) -> list[str]:
        """The statements, in order."""
        statements: list[str] = []
        for node in self._order:
            key = id(node), id(node) in self._rounded
            if key in self._known:
                self._names[id(node)] = self._known[key]
            elif node.op is not None:
                name = f"{self._prefix}{len(statements)}"
                dtype = self._dtypes[id(node)] or self._default
                text = self._applied(node)
                if key[1]:
                    text = rounded(text, self._narrow[id(node)])
                statements.append(f"const {C_TYPES[dtype]} {name} = {text};")
                self._names[id(node)] = self._known[key] = name
        return statements

    def results(self, dtypes: Sequence[str]) -> list[str]:
        """The text of each output, which is narrowed to one of `dtypes`; after `lines`."""
        return [single(self._text(o, self._default), self._dtypes[id(o)] or self._default, dtype)
                for o, dtype in zip(self._outputs, dtypes)]

    def _applied(self, node: Expr) -> str:
        op = node.op
        operand = _operand_dtype(node, self._dtypes) or self._default
        narrow = _narrow_operand(node, self._narrow) if self._every else None
        args = {}
        for i, (param, arg) in enumerate(zip(op.params, node.args)):
            wanted = "bool" if op.types == "select" and i == 0 else operand
            args[param] = self._text(arg, wanted, narrow)
        # A bare 0.5 is a double in C++, and would drag the whole expression with it: GPUs
        # that are not made for data centres compute doubles at 1/64 of the speed of floats.
        text = _NUMBER.sub(lambda m: f"({C_TYPES[operand]})({m[0]})", op.cuda)
        half = self._narrow.get(id(node))
        text = text.replace("nearest(", f"rounded<{C_TYPES[half]}>(" if half else "(")
        names = "|".join(map(re.escape, op.params))
        return re.sub(rf"\b(?:{names})\b", lambda m: args[m[0]], text)

    def _text(self, node: Expr, dtype: str, narrow: str | None = None) -> str:
        if not node.is_constant:
            return self._names[id(node)]
        if narrow is None:
            return number(node.value, dtype)
        return rounded(single(number(node.value, "float64"), "float64", narrow), narrow)


def number(value: Number, dtype: str) -> str:
    """A Python number as a C++ value of a compute dtype."""
    ctype = C_TYPES[dtype]
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float) and not math.isfinite(value):
        wide = "double" if ctype == "double" else "float"
        text = f"not_a_number<{wide}>()" if math.isnan(value) else (
            f"{'-' if value < 0 else ''}infinity<{wide}>()")
    elif isinstance(value, int) and abs(value) >= 1 << 31:
        text = f"{value}ull" if value >= 1 << 63 else f"{value}ll"
    else:
        text = repr(value)
    return f"({ctype})({text})"
