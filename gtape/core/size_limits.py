"""How large results can be, and which are too large to be computed while a function is traced."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gtape.core.errors import InvalidArgumentError, ResourceExhaustedError
from gtape.core.spec import Spec
from gtape.core.symbolic_dim import is_open

#: The addresses of a process end here, so no array is larger.
_ADDRESSES = 2 ** 47
#: While a function is traced, results of more elements than this that do not depend on its
#: arguments are left to its calls. Smaller ones are computed once, while tracing, which makes
#: every call faster.
_FOLDED = 2 ** 22


def check_size(name: str, spec: Spec) -> None:
    """Refuse what no array can be. Open lengths are not looked at.

    Raises:
        InvalidArgumentError: a negative length, or 2**63 elements or more.
        ResourceExhaustedError: more bytes than a process can have.
    """
    shape = spec.shape
    if is_open(shape):
        return
    if any(n < 0 for n in shape):
        raise InvalidArgumentError(f"{name}: a shape must not hold negative lengths; got "
                                   f"{list(shape)}")
    count = math.prod(shape)
    if count >= 2 ** 63 or any(n >= 2 ** 63 for n in shape):
        raise InvalidArgumentError(f"{name}: a tensor must have fewer than 2**63 elements; got "
                                   f"the shape {list(shape)}")
    if count * spec.dtype.size > _ADDRESSES:
        raise exhausted(name, [spec])


def exhausted(name: str, specs: Iterable[Spec],
              cause: BaseException | None = None) -> ResourceExhaustedError:
    """The error where there is no memory to compute these results; what a device says of that, and
    of what a tape holds, is kept."""
    said = f"\n{cause}" if isinstance(cause, ResourceExhaustedError) else ""
    return ResourceExhaustedError(
        f"{name}: there is not enough memory to compute {', '.join(map(str, specs))}; use smaller "
        f"tensors, a dtype of fewer bytes, or do it in several steps{said}")


class room_for:
    """Inside the block the host computes a result of this spec by NumPy; both ways of being too
    large are errors in words.

    Raises:
        InvalidArgumentError, ResourceExhaustedError: as `check_size`, or there is no memory.
    """

    __slots__ = ("_name", "_spec")

    def __init__(self, name: str, spec: Spec) -> None:
        check_size(name, spec)
        self._name = name
        self._spec = spec

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, MemoryError):
            raise exhausted(self._name, [self._spec], error) from error


def outgrows(specs: Sequence[Spec], inputs: Sequence[Spec] = ()) -> bool:
    """Whether results are large, and larger than the inputs that they are computed from."""
    if any(is_open(s.shape) for s in (*specs, *inputs)):
        return False
    size = sum(math.prod(s.shape) for s in specs)
    return size > _FOLDED and size > sum(math.prod(s.shape) for s in inputs)
