"""cuSPARSE, which CuPy's modules need to be loaded.

Its functions are not simulated: each names itself when it is called, and answers so.
"""

from __future__ import annotations

import ctypes

from gtape.devices.simulated.stand_ins import StandIn

_SUCCESS, _NOT_SUPPORTED = 0, 10
_NAMES = ("SUCCESS", "NOT_INITIALIZED", "ALLOC_FAILED", "INVALID_VALUE", "ARCH_MISMATCH",
          "MAPPING_ERROR", "EXECUTION_FAILED", "INTERNAL_ERROR", "MATRIX_TYPE_NOT_SUPPORTED",
          "ZERO_PIVOT", "NOT_SUPPORTED", "INSUFFICIENT_RESOURCES")
# Kept here, since callers hold their addresses.
_texts = [ctypes.create_string_buffer(f"CUSPARSE_STATUS_{name}".encode()) for name in _NAMES]
_unknown = ctypes.create_string_buffer(b"unknown status of cuSPARSE")

library = StandIn("libcusparse.so.12", "cusparse", _NOT_SUPPORTED, _NOT_SUPPORTED)


@library.function("GetErrorName", ctypes.c_int, returns=ctypes.c_void_p)
@library.function("GetErrorString", ctypes.c_int, returns=ctypes.c_void_p)
def _name(status: int) -> int:
    known = 0 <= status < len(_texts)
    return ctypes.addressof(_texts[status] if known else _unknown)
