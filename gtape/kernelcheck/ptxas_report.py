"""What a compiled kernel shows without a device: its registers, its spills, how wide it reads.

Registers and spills are told by ptxas in NVRTC's log; the width of memory accesses is read from the
PTX, since ptxas joins no accesses.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gtape.core.errors import InternalError
from gtape.devices import cache
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.opdef.cuda_text import C_SIZES

KIND = "proofs"
#: In the names of the files: proofs of another form are not found.
_FORMAT = "2"
#: What helps against the problems.
ADVICE = """\
Spills go to memory: let a thread hold less, or allow it more registers by __launch_bounds__.
16 bytes move at once through a pointer to Vec<T, V>: reinterpret_cast<const Vec<T, V>*>(x)[i].\
"""
_LOG_PART = re.compile(r"Compiling entry function '([^']+)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_LOCAL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_THREADS = re.compile(r"\.maxntid\s+([\d, ]+)")
_BLOCKS = re.compile(r"\.minnctapersm\s+(\d+)")
_REGISTERS_OF_ALL = 65536
_PTX_ENTRY = re.compile(r"^\.(?:visible|weak|extern)?\s*\.?entry\s+([\w$]+)\(", re.MULTILINE)
_ACCESS = re.compile(r"^\s*(?:@!?%p\d+\s+)?(ld|st)\.(?!shared|local|param|const)[\w.:]*?"
                     r"v([248])\.[a-z](\d+)\s", re.MULTILINE)
_VECTOR = re.compile(r"\bVec<([^<>,]+),\s*(\d+)>")


class Proof(NamedTuple):
    """Of one kernel and architecture: registers of a thread, bytes of stack, bytes spilled (stored
    and loaded), how many loads and stores are 16 bytes or wider, and how many registers the launch
    bounds allow."""

    registers: int
    stack: int
    spills: int
    wide_loads: int
    wide_stores: int
    limit: int


def prove(text: str, entries: Sequence[str], arch: str, compiler: nvrtc.Nvrtc) -> dict[str, Proof]:
    """Compile the kernels of one program and look at each. Raises KernelError: it does not
    compile."""
    compiled = compiler.compile(text, entries, arch, options=[nvrtc.VERBOSE])
    usages, accesses = usage(compiled.log), wide_accesses(compiled.ptx)
    limits = register_limits(compiled.ptx)
    unseen = [name for name in compiled.names.values() if name not in usages.keys() & accesses]
    if unseen:
        raise InternalError(f"NVRTC {compiler.version} tells nothing of {unseen[0]} for {arch}")
    return {entry: Proof(*usages[name], *accesses[name], limits[name])
            for entry, name in compiled.names.items()}


def usage(log: str) -> dict[str, tuple[int, int, int]]:
    """Registers, bytes of stack and of spills of each kernel, from what ptxas says. Functions that
    were not inlined count for the kernel before them. Raises InternalError: ptxas speaks otherwise
    of a kernel than is known here."""
    by_entry = {}
    for name, part in _parts(_LOG_PART, log):
        registers = _REGISTERS.search(part)
        local = [[int(n) for n in numbers] for numbers in _LOCAL.findall(part)]
        if registers is None or not local:
            raise InternalError(f"ptxas tells no registers or spills of {name}: {part.strip()}")
        by_entry[name] = (int(registers[1]), sum(n[0] for n in local),
                          sum(n[1] + n[2] for n in local))
    return by_entry


def wide_accesses(ptx: str) -> dict[str, tuple[int, int]]:
    """How many loads and stores of global memory move 16 bytes or more, in each kernel."""
    by_entry = {}
    for name, part in _parts(_PTX_ENTRY, ptx):
        wide = [access for access, count, bits in _ACCESS.findall(part.partition("\n}")[0])
                if int(count) * int(bits) >= 128]
        by_entry[name] = (wide.count("ld"), wide.count("st"))
    return by_entry


def register_limits(ptx: str) -> dict[str, int]:
    """How many registers a thread of each kernel may have, by its launch bounds: the 65,536 of a
    multiprocessor are given to warps in units of 256."""
    by_entry = {}
    for name, part in _parts(_PTX_ENTRY, ptx):
        bounds = part.partition("{")[0]
        threads, blocks = _THREADS.search(bounds), _BLOCKS.search(bounds)
        lanes = math.prod(int(n) for n in re.findall(r"\d+", threads[1])) if threads else 1
        warps = -(-lanes // 32) * (int(blocks[1]) if blocks else 1)
        # An instruction can name no more than 255.
        by_entry[name] = min(255, _REGISTERS_OF_ALL // warps // 256 * 8)
    return by_entry


def _parts(heading: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    headings = list(heading.finditer(text))
    for at, after in zip(headings, [*headings[1:], None]):
        yield at[1], text[at.end(): after.start() if after else len(text)]


def declares_wide(kernel: Kernel) -> bool:
    """Whether the kernel is meant to move 16 bytes at once. With a template parameter V: V is the
    number of its elements in 16 bytes. Without: it, or what it calls, asks for `Width<T>`, or moves
    a `Vec` that the text gives 16 bytes."""
    name, _, given = kernel.entry.partition("<")
    declaration = re.search(rf"template\s*<([^>]*)>\s*__global__[^;{{]*\b{re.escape(name)}\s*\(",
                            kernel.text)
    names = [p.split("=")[0].split()[-1] for p in declaration[1].split(",")] if declaration else []
    bound = dict(zip(names, [a.strip() for a in given.rstrip("> ").split(",")]))
    width = bound.get("V", "")
    if width.isdigit():
        return width != "1" and any(C_SIZES.get(a, 0) * int(width) == 16 for a in bound.values())
    code = reached(kernel.text, name)
    return "Width<" in code or any(C_SIZES.get(ctype.strip(), 0) * int(count) == 16
                                   for ctype, count in _VECTOR.findall(code))


def problems(kernel: Kernel, proof: Proof) -> list[str]:
    """What is wrong with a compiled kernel. With registers to spare, ptxas itself chooses to keep a
    value or two in memory, mostly across its subroutines for 64-bit division: no shortage, and
    nothing that the text could mend."""
    told = []
    # A thread is given registers by the eight.
    if proof.spills and proof.registers > proof.limit - 8:
        told.append(f"spills {proof.spills} bytes ({proof.registers} registers of {proof.limit})")
    if declares_wide(kernel) and not proof.wide_loads + proof.wide_stores:
        told.append("moves nothing 16 bytes at once, and is meant to")
    return told


def known(kernel: Kernel, arch: str, version: str) -> Proof | None:
    """What an earlier compilation of the same text by the same NVRTC showed."""
    data = cache.read(KIND, _file_name(kernel, arch, version))
    try:
        numbers = json.loads(data or b"")
        return Proof(*(int(n) for n in numbers))
    except (ValueError, TypeError):
        return None


def keep(kernel: Kernel, arch: str, version: str, proof: Proof) -> None:
    """Write down what a compilation showed, for `known`."""
    cache.write(KIND, _file_name(kernel, arch, version), json.dumps(proof).encode())


def _file_name(kernel: Kernel, arch: str, version: str) -> str:
    return cache.key(_FORMAT, version, arch, *nvrtc.FLAGS, kernel.entry, kernel.text)


_NOT_CODE = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_TEMPLATE = re.compile(r"\btemplate\s*<[^{;()]*?>(?=\s*[\w_])")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|alignas)\s*\((?:[^()]|\([^()]*\))*\)")
_STRUCT = re.compile(r"\b(?:struct|class|using|namespace)\s+(\w+)")
_FUNCTION = re.compile(r"\b(\w+)\s*(?:<[^()]*>)?\s*\(")
_WORD = re.compile(r"\b[A-Za-z_]\w*")


def reached(text: str, kernel: str) -> str:
    """The definitions of the program `text` that take part in the kernel of that name."""
    known = _definitions(text)
    names: dict[str, None] = {}
    waiting = [kernel]
    while waiting:
        name = waiting.pop()
        if name in known and name not in names:
            names[name] = None
            waiting += _WORD.findall(known[name])
    return "\n".join(known[name] for name in names)


@functools.cache
def _definitions(text: str) -> dict[str, str]:
    """The definitions at the top level, by name; overloads and specialisations together."""
    definitions: dict[str, str] = {}
    for part in _top_level(_NOT_CODE.sub("", text)):
        head = _ATTRIBUTE.sub("", _TEMPLATE.sub("", part.partition("{")[0]))
        name = _STRUCT.search(head) or _FUNCTION.search(head)
        if name:
            definitions[name[1]] = f"{definitions.get(name[1], '')}{part}\n"
    return definitions


def _top_level(code: str) -> Iterator[str]:
    depth = start = 0
    for mark in re.finditer(r"[{};]", code):
        depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
        if depth == 0:
            yield code[start: mark.end()]
            start = mark.end()
