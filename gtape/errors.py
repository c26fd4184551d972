"""gtape.errors: what operations raise, and the warnings of tapes."""

from __future__ import annotations

from gtape.core.errors import (
    AbortedError,
    AlreadyExistsError,
    CacheWarning,
    CancelledError,
    ComplexCastWarning,
    DataLossError,
    DeadlineExceededError,
    EagerFunctionWarning,
    EngineError,
    FailedPreconditionError,
    GradientMismatch,
    GradientNoneError,
    GradientNoneWarning,
    InternalError,
    InvalidArgumentError,
    KernelError,
    NativeCodeWarning,
    NonFloatWarning,
    NotFoundError,
    NotTraceableError,
    OperatorNotAllowedInGraphError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    RetraceWarning,
    TapeUseWarning,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

__all__ = [
    "AbortedError", "AlreadyExistsError", "CacheWarning", "CancelledError", "ComplexCastWarning",
    "DataLossError", "DeadlineExceededError", "EagerFunctionWarning", "EngineError",
    "FailedPreconditionError", "GradientMismatch", "GradientNoneError", "GradientNoneWarning",
    "InternalError", "InvalidArgumentError", "KernelError", "NativeCodeWarning",
    "NonFloatWarning", "NotFoundError", "NotTraceableError", "OpError",
    "OperatorNotAllowedInGraphError", "OutOfRangeError", "PermissionDeniedError",
    "ResourceExhaustedError", "RetraceWarning", "TapeUseWarning", "UnauthenticatedError",
    "UnavailableError", "UnimplementedError", "UnknownError",
]
