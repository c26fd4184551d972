"""The table of a compiled program: its names stand where the C++ of the kernels reads them."""

from __future__ import annotations

import re

from gtape.compile.cpp.module_source import PythonApi
from gtape.devices.kernel_source import read_shipped


def test_the_python_api_is_the_struct_of_the_header_field_by_field():
    (body,) = re.findall(r"struct Python \{(.*?)\n\};", read_shipped("cpu_program.h"), re.DOTALL)
    body = re.sub(r"//.*", "", body)
    fields = []
    for declaration in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)\(", declaration)
        fields += [pointer[1]] if pointer else re.findall(r"\*\s*(\w+)", declaration)
    assert fields == [name for name, _ in PythonApi._fields_]
