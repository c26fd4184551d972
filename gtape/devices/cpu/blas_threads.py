"""How many threads NumPy's OpenBLAS computes matrix products with.

OpenBLAS divides a product of some 260,000 multiplications or more among all cores, and its threads
spin until the last of them is done. Where one shares its core with a compiler, all wait for a time
slice of the system, some milliseconds, and a product of 10 us takes as long: the first epoch of an
LSTM took 25 s of processor time on two cores, and takes 2 s with a core left to the compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from gtape.core.locks import lock


class _Blas(NamedTuple):
    """OpenBLAS' own functions, called without giving up the interpreter: they take 0.1 us."""

    get_threads: Callable[[], int]
    set_threads: Callable[[int], None]


@cache
def _openblas() -> _Blas | None:
    """The one that NumPy is linked with; None: it is another library, which is left as it is."""
    try:
        linked = import_module("numpy._core._multiarray_umath")
        library = ctypes.PyDLL(str(linked.__file__))  # and what that is linked with
    except (ImportError, OSError):
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            with suppress(AttributeError):
                return _Blas(library[f"{prefix}_get_num_threads{suffix}"],
                             library[f"{prefix}_set_num_threads{suffix}"])
    return None


class _Fewer:
    """The calls under way that leave a core, and the threads that there were before."""

    lock = lock()
    calls = 0
    threads = 1


def leaving_a_core(run: Callable[..., object]) -> Callable[..., Any]:
    """`run`, with NumPy's matrix products on a thread fewer than there are cores while it runs."""
    blas = _openblas()
    if blas is None or blas.get_threads() == 1:
        return run
    get_threads, set_threads = blas

    def fewer(*args: object) -> Any:
        with _Fewer.lock:
            if not _Fewer.calls:
                _Fewer.threads = get_threads()
                set_threads(max(_Fewer.threads - 1, 1))
            _Fewer.calls += 1
        try:
            return run(*args)
        finally:
            with _Fewer.lock:
                _Fewer.calls -= 1
                if not _Fewer.calls:
                    set_threads(_Fewer.threads)

    return fewer
