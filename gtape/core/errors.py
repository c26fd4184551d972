"""Every error class of gtape, as one tree; reached by users as `gtape.errors`.

`InvalidArgumentError` is a `ValueError` and a `TypeError` too, because a bad shape or dtype is what
those classes mean to Python code that does not know this tree.
"""

from __future__ import annotations

from typing import Any


class OpError(Exception):
    """An op could not be carried out.

    Made of a message, or as TensorFlow's are of a node, an operation, a message and a code; nodes
    and operations have no meaning here. `error_code` is TensorFlow's number for the class.
    """

    node_def = op = None
    error_code = 2

    def __init_subclass__(cls, code: int | None = None) -> None:
        super().__init_subclass__()
        # Classes without a number of their own, users' among them, have that of their base.
        if code is not None:
            cls.error_code = code

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args[2:3] if len(args) > 2 else args))

    @property
    def message(self) -> str:
        return str(self)


class AbortedError(OpError, code=10):
    """The operation was given up."""


class AlreadyExistsError(OpError, code=6):
    """What was to be made is there already."""


class CancelledError(OpError, code=1):
    """The operation was cancelled."""


class DataLossError(OpError, code=15):
    """Stored data is damaged."""


class DeadlineExceededError(OpError, code=4):
    """Time ran out."""


class KernelError(OpError):
    """A kernel does not compile, or the emulator caught it doing what a GPU forbids."""


class PassingError(KernelError):
    """A failure of a compiler's surroundings: the same command may succeed another time."""


class MissingError(KernelError):
    """There is nothing to compile with, or it is not wanted."""


class SimulatorError(MissingError):
    """The simulated GPU cannot be built or used; the message says what is missing."""


class FailedPreconditionError(OpError, code=9):
    """The state of the system forbids the operation."""


class InternalError(OpError, code=13):
    """gtape contradicted itself: please report it."""


class GuardZoneError(InternalError):
    """A compiled program wrote beside its values, where GTAPE_GUARD_ZONES=1 had put guard zones."""


class InvalidArgumentError(OpError, ValueError, TypeError, code=3):
    """A shape, dtype, device or value does not fit the operation."""


class NotFoundError(OpError, LookupError, code=5):
    """Something named does not exist."""


class OutOfRangeError(OpError, code=11):
    """An iteration went past its end."""


class PermissionDeniedError(OpError, code=7):
    """The caller may not do this."""


class ResourceExhaustedError(OpError, MemoryError, code=8):
    """Memory ran out."""


class UnauthenticatedError(OpError, code=16):
    """The caller is not known."""


class UnavailableError(OpError, code=14):
    """A device or service cannot be used now."""


class UnimplementedError(OpError, NotImplementedError, code=12):
    """The operation exists but not for this case."""


class UnknownError(OpError):
    """An error of another library, passed on."""


class OperatorNotAllowedInGraphError(TypeError):
    """A traced value was used where Python needs a number."""


class NotTraceableError(NotImplementedError):
    """An operation needs numbers that a trace does not have; its function runs eagerly."""


class UntracedBranchError(NotTraceableError):
    """A call takes a branch that its trace does not have; the call runs eagerly."""


class GradientMismatch(AssertionError):
    """A backward rule disagrees with finite differences."""


class GradientNoneWarning(UserWarning):
    """A gradient is None; `GradientTape.explain` says why."""


class NonFloatWarning(UserWarning):
    """A non-float tensor was watched, differentiated, or asked for its gradient."""


class TapeUseWarning(UserWarning):
    """A tape is used in a way that costs more than it needs to."""


class RetraceWarning(UserWarning):
    """A `tf.function` is traced again and again; `explain_cache` says why."""


class EagerFunctionWarning(UserWarning):
    """A `tf.function` runs eagerly, because an operation in it cannot be traced."""


class NativeCodeWarning(UserWarning):
    """A traced function could not be compiled, and is run node by node."""


class CacheWarning(UserWarning):
    """Compiled programs are not kept, since others might change what is kept there."""


class ComplexCastWarning(UserWarning):
    """A cast drops an imaginary part."""


class GradientNoneError(RuntimeError):
    """A gradient is None and `on_none="raise"` was asked for."""


class EngineError(ImportError):
    """Keras cannot be imported with gtape as its engine."""
