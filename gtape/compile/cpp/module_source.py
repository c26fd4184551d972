"""The C++ text of a whole program: its kernels, and for each native segment one function."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import NamedTuple

from gtape.compile.cpp.loops import PARTS, KernelText, LoopKernel
from gtape.compile.ir.nodes import Hosted, IrNode, LibraryCall, Product, Value
from gtape.compile.schedule.fuse import FusionGroup
from gtape.compile.schedule.plan import MemoryPlan, Place, nbytes, numpy_dtype, padded
from gtape.core.errors import InvalidArgumentError, UntracedBranchError
from gtape.opdef.cuda_text import C_TYPES

#: Operations, roughly, from which on other threads of Python run meanwhile: a millisecond.
#: A thread that lets Python go has to wait until it gets it back, up to a switch interval of 5 ms
#: where others compute: not worth it for less.
_LONG = 1 << 24
#: Products of up to so many multiplications are compiled in line.
#: Two matrices of 64 by 64. Up to there what the general product does first, packing and choosing a
#: way, takes longer than the three loops that a compiler makes which knows the sizes.
_SMALL = 1 << 18
#: Up to so many products in a sum: a copy of them lies on the stack, 128 bytes for each.
_DEEP = 1 << 10


class PythonApi(ctypes.Structure):
    """What a program's table begins with: `struct Python` of kernels/cpu_program.h."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in (
        "none", "wrong_layout", "failed", "keep", "array_type", "release", "resume"))


class Slots(NamedTuple):
    """Where in a program's table of pointers each kind begins."""

    arguments: int
    results: int
    captures: int
    states: int
    constants: int
    arena: int
    flag: int
    scratch: int
    total: int
    #: Whether every step that needs scratch memory has its own.
    apart: bool = False

    def text(self, place: Place) -> str:
        """The C++ pointer to a place."""
        if place.role == "arena":
            return f"(P[{self.arena}] + {place.at})" if place.at else f"P[{self.arena}]"
        start = {"argument": self.arguments, "result": self.results, "capture": self.captures,
                 "state": self.states, "constant": self.constants}[place.role]
        return f"P[{start + place.at}]"


class ProgramSource(NamedTuple):
    """A program's text, its table, its arena in bytes, the steps that need scratch memory, and its
    segments: lists of hosted nodes that follow each native function, one list for each."""

    text: str
    slots: Slots
    arena: int
    scratches: tuple[IrNode, ...]
    segments: tuple[tuple[IrNode, ...], ...]
    #: What a run may end with.
    failures: tuple[tuple[type[Exception], str], ...]
    #: Whether other threads of Python run while it does.
    releases: bool


def slots_of(plan: MemoryPlan, arguments: int, captures: int) -> Slots:
    counts = {"arguments": arguments, "results": len(plan.outputs), "captures": captures,
              "states": len(plan.states), "constants": len(plan.constants), "arena": 1, "flag": 1,
              "scratch": 0}
    starts = itertools.accumulate(counts.values(), initial=len(PythonApi._fields_))
    return Slots(**dict(zip((*counts, "total"), starts)), apart=plan.guarded)


class _Program:
    def __init__(self, plan: MemoryPlan, slots: Slots) -> None:
        self.plan, self.slots = plan, slots
        self.functions: dict[str, str] = {}
        self.headers: dict[str, None] = {}
        self.structures: dict[str, str] = {}
        self.failures: list[tuple[type[Exception], str]] = []
        #: The steps that need scratch memory, and the C++ of how many bytes.
        self.scratches: list[tuple[IrNode, str]] = []

    def structure(self, body: str) -> str:
        """The name of a struct with this body."""
        return self.structures.setdefault(body, f"Sizes{len(self.structures)}")

    def pointer(self, value: Value) -> str:
        """A typed C++ pointer to the first element of a value or view."""
        place, _, offset = self.plan.layout(value)
        text = f"(({C_TYPES[value.dtype]}*){self.slots.text(place)}"
        return f"({text} + {offset}))" if offset else text + ")"

    def scratch(self, node: IrNode, count: str) -> str:
        """The C++ pointer to scratch memory of `count` bytes."""
        at = len(self.scratches) if self.slots.apart else 0
        self.scratches.append((node, count))
        return f"P[{self.slots.scratch + at}]"

    def loop(self, text: KernelText, last: IrNode) -> list[str]:
        name = self.functions.get(text.body)
        if name is None:
            # The text is the key: layers of one shape share their kernels, and the compiler's time.
            name = self.functions[text.body] = f"kernel{len(self.functions)}"
        pointers = [self.slots.text(self.plan.places[v.number]) for _, v in text.pointers]
        if text.scratch:
            pointers.append(self.scratch(last, str(text.scratch)))
        lines = [f"char* q[] = {{{', '.join(pointers)}}};",
                 f"const int parts = run_kernel({name}, q, {PARTS if text.shared else 1});",
                 "(void)parts;", *text.finish.split("\n")]
        return ["{", *("    " + line for line in lines if line), "}"]

    def product(self, node: Product) -> list[str]:
        a, b = node.inputs
        (y,) = node.outputs
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        strides = [self.plan.layout(v)[1] for v in (a, b)]
        kind = "f32" if y.dtype == "float32" else "f64"
        batch = y.shape[:-2]
        count = math.prod(batch)
        core = (f"{m}, {n}, {k}, {self.pointer(a)}, {strides[0][-2]}, {strides[0][-1]}, "
                f"{self.pointer(b)}, {strides[1][-2]}, {strides[1][-1]}, {self.pointer(y)}, {n}, 0")
        if count == 1 and m * n * k <= _SMALL and k <= _DEEP:
            self.headers["cpu_small_gemm.h"] = None
            sizes = (C_TYPES[y.dtype], m, n, k, *strides[0][-2:], *strides[1][-2:], n)
            return [f"gtape::small_gemm<{', '.join(map(str, sizes))}>({self.pointer(a)}, "
                    f"{self.pointer(b)}, {self.pointer(y)});"]
        if count == 1:
            return [f"gtape_gemm_{kind}({core});"]
        offsets = [_offsets(batch, v.shape[:-2], s[:-2]) for v, s in zip((a, b), strides)]
        # Results are new, and lie one behind the other.
        offsets.append([i * m * n for i in range(count)])
        # Where operands are broadcast or transposed, the matrices of a batch lie at no fixed
        # distance.
        tables = [f"static const long {name}[] = {{{', '.join(map(str, table))}}};"
                  for name, table in zip(("at_a", "at_b", "at_c"), offsets)]
        return ["{", *("    " + t for t in tables),
                f"    gtape_gemm_batched_{kind}({core}, {count}, at_a, at_b, at_c);", "}"]

    def library(self, node: LibraryCall) -> list[str]:
        self.headers.update(dict.fromkeys(node.headers))
        lines = [node.emit(self, node)]
        if node.checks:
            kind = UntracedBranchError if node.premise else InvalidArgumentError
            self.failures.append((kind, node.checks))
            # No exception passes through native code: the number of the failure is left behind, and
            # Python raises it when the call returns.
            lines = [f"if (!{lines[0]}) {{ *(int*)P[{self.slots.flag}] = {len(self.failures)}; "
                     f"return false; }}"]
        if not node.scratch:
            return lines
        count = node.scratch(self) if callable(node.scratch) else str(node.scratch)
        return ["{", f"    char* const scratch = {self.scratch(node, count)};",
                *("    " + line for line in lines), "}"]

    def group(self, group: FusionGroup) -> list[str]:
        if group.is_loop:
            plan = self.plan
            kernel = LoopKernel(group, plan.stored, plan.in_place, plan.rounded, plan.homes)
            return self.loop(kernel.text(), group.nodes[-1])
        (node,) = group.nodes
        if isinstance(node, Product):
            return self.product(node)
        assert isinstance(node, LibraryCall)
        return self.library(node)

    def copy(self, state: int, value: Value) -> str:
        target = self.slots.text(Place("state", state))
        place, _, offset = self.plan.layout(value)
        start = f"(char*){self.slots.text(place)} + {offset * numpy_dtype(value.dtype).itemsize}"
        return f"__builtin_memcpy({target}, {start}, {nbytes(value)});"


def _offsets(batch: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Where each matrix of a batch lies."""
    missing = len(batch) - len(shape)
    offsets = [0]
    for i, n in enumerate(batch):
        step = 0 if i < missing or shape[i - missing] == 1 else strides[i - missing]
        offsets = [at + j * step for at in offsets for j in range(n)]
    return offsets


def source_of(plan: MemoryPlan, arguments: int, captures: int) -> ProgramSource:
    """The text of a plan."""
    slots = slots_of(plan, arguments, captures)
    program = _Program(plan, slots)
    pieces: list[list[str]] = [[]]
    hosted: list[list[IrNode]] = [[]]
    for group in plan.groups:
        first = group.nodes[0]
        if isinstance(first, Hosted):
            hosted[-1].append(first)
            continue
        # Native code behind a step in Python is a segment of its own, which Python calls
        # afterwards.
        if hosted[-1]:
            pieces.append([])
            hosted.append([])
        pieces[-1] += program.group(group)
    if plan.copies and hosted[-1]:
        pieces.append([])
        hosted.append([])
    pieces[-1] += [program.copy(state, value) for state, value in plan.copies]
    releases = work(plan) >= _LONG
    text = _assembled(program, pieces, slots, releases)
    needing = tuple(node for node, _ in program.scratches)
    count = len(needing) if slots.apart else min(1, len(needing))
    return ProgramSource(text, slots._replace(total=slots.scratch + count), padded(plan.arena),
                         needing, tuple(tuple(nodes) for nodes in hosted),
                         tuple(program.failures), releases)


def work(plan: MemoryPlan) -> int:
    """About how many operations a run takes."""
    total = 0
    for group in plan.groups:
        for node in group.nodes:
            out = node.outputs[0] if node.outputs else None
            if isinstance(node, Product):
                # Vector units multiply and add sixteen numbers while memory delivers one.
                total += 2 * node.outputs[0].size * node.inputs[0].shape[-1] // 16
            elif out is not None:
                total += max(out.size, *(v.size for v in node.inputs), 0)
    return total


def _assembled(program: _Program, pieces: list[list[str]], slots: Slots, releases: bool) -> str:
    lines = ['#include "cpu_program.h"', *(f'#include "{h}"' for h in program.headers), ""]
    lines += [f"struct {name} {{ {body} }};" for body, name in program.structures.items()]
    if program.scratches:
        sizes = ", ".join(f"(long)({count})" for _, count in program.scratches)
        lines += [f"GTAPE_EXPORT const long gtape_scratch[] = {{{sizes}}};", ""]
    for body, name in program.functions.items():
        lines += [body.replace("KERNEL", name), ""]
    for i, piece in enumerate(pieces):
        lines += [f"static bool segment{i}(char** P) {{",
                  *("    " + line for line in piece),
                  "    return true;", "}", ""]
        lines += _entry(i, slots, releases)
    return "\n".join(lines)


def _entry(index: int, slots: Slots, releases: bool) -> list[str]:
    """The function that Python calls: the first takes the arrays of arguments and results."""
    head = f"GTAPE_EXPORT void* gtape_segment{index}(void* self, void* const* given, long count) {{"
    lines = [head, "    char** P = (char**)((ArrayObject*)self)->data;",
             "    const Python& python = *(const Python*)P;"]
    if index == 0:
        lines += ["    for (long i = 0; i < count; i++) {",
                  "        const ArrayObject* array = (const ArrayObject*)given[i];",
                  "        if (array->type != python.array_type || (array->flags & "
                  "CONTIGUOUS_AND_ALIGNED) != CONTIGUOUS_AND_ALIGNED) {",
                  "            python.keep(python.wrong_layout);",
                  "            return python.wrong_layout;", "        }",
                  f"        P[{slots.arguments} + i] = array->data;", "    }"]
    before = ["    void* thread = python.release();"] if releases else []
    after = ["    python.resume(thread);"] if releases else []
    return [*lines, *before, f"    const bool good = segment{index}(P);", *after,
            "    void* made = good ? python.none : python.failed;",
            "    python.keep(made);", "    return made;", "}", ""]
