"""Executor: memory and launches of one device. The seam between gtape and what runs kernels.

Behind it is a GPU through CuPy, or the emulator, which runs the same kernel text on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gtape.core.dtypes import as_dtype, require_usable
from gtape.devices.cuda.runtime.kernel import Kernel

if TYPE_CHECKING:
    from gtape.core.device import ArrayModule

Grid = tuple[int, int, int]
#: A loaded kernel: `function(grid, block, args, shared memory in bytes, stream)`.
Function = Callable[..., None]


class Loader(Protocol):
    """What turns kernel text into functions."""

    def load(self, kernel: Kernel) -> Function:
        """The loaded function of a kernel. Raises KernelError: it does not compile."""
        ...

    def stream(self) -> Any:
        """The stream on which to launch now."""
        ...


class Executor:
    """Where kernels run.

    Args:
        xp: the array module, for views and copies.
        empty: `(shape, dtype) -> array`, uninitialised and C-contiguous.
        loader: what loads kernels.
        multiprocessors: how many the device has; sets the size of grids.
        shared_bytes: the most shared memory that a block can have; every GPU gives 48 KiB.
        contiguity: the attribute of arrays that says whether they lie in C order without gaps.
        alone: whether there is no other device whose arrays could be passed.
    """

    def __init__(self, xp: ArrayModule, empty: Callable[..., Any], loader: Loader,
                 multiprocessors: int, shared_bytes: int = 48 * 1024,
                 contiguity: str = "flags.c_contiguous", alone: bool = False) -> None:
        self.xp = xp
        self.alone = alone
        self.shared_bytes = shared_bytes
        self.contiguity = contiguity
        self.empty = empty
        self.multiprocessors = multiprocessors
        self.stream = loader.stream
        self._loader = loader
        self._functions: dict[Kernel, Function] = {}

    def function(self, kernel: Kernel) -> Function:
        """The loaded function of a kernel."""
        function = self._functions.get(kernel)
        if function is None:  # two threads may both load it, and use the first
            function = self._functions.setdefault(kernel, self._loader.load(kernel))
        return function

    def launch(self, kernel: Kernel, grid: Grid, block: Grid, args: tuple[Any, ...],
               smem: int = 0) -> None:
        """Run `kernel` on `grid` blocks of `block` threads with `smem` bytes of dynamic shared
        memory, on the current stream. Raises InvalidArgumentError: the arguments are not what the
        kernel takes; KernelError: the kernel does not compile."""
        # The driver does not find out a pointer of another device: the launch would read garbage or
        # fault. With one GPU there is no other.
        if not self.alone:
            kernel.check_devices(args)
        kernel.check(args)
        # A grid without blocks is an error of the driver's, and nothing to do.
        if 0 not in grid:
            self.function(kernel)(grid, block, args, smem, self.stream())

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """An array of zeros."""
        return self.xp.zeros(shape, dtype)

    def contiguous(self, array: Any) -> Any:
        """`array`, or a copy of it whose elements lie in C order without gaps."""
        return array if array.flags.c_contiguous else self.xp.ascontiguousarray(array)

    def blocks(self, work: int, per_block: int, waves: int = 8) -> Grid:
        """A grid for a grid-stride loop over `work` items: at most `waves` blocks for each
        multiprocessor, so that the loop is long where there is much to do."""
        wanted = -(-work // per_block)
        return (max(1, min(wanted, self.multiprocessors * waves)), 1, 1)


@cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a dtype's name, bfloat16 too."""
    return np.dtype(require_usable(as_dtype(name)).as_numpy_dtype)


def power_of_two(count: int) -> int:
    """The least power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()
