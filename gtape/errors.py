"""gtape.errors: what operations raise, and the warnings of tapes."""

from __future__ import annotations

from gtape.core.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    ComplexCastWarning,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    GradientMismatch,
    GradientNoneError,
    GradientNoneWarning,
    InternalError,
    InvalidArgumentError,
    KernelError,
    NonFloatWarning,
    NotFoundError,
    OperatorNotAllowedInGraphError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TapeUseWarning,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

__all__ = [
    "AbortedError", "AlreadyExistsError", "CancelledError", "ComplexCastWarning", "DataLossError",
    "DeadlineExceededError", "FailedPreconditionError", "GradientMismatch", "GradientNoneError",
    "GradientNoneWarning", "InternalError", "InvalidArgumentError", "KernelError",
    "NonFloatWarning", "NotFoundError", "OpError", "OperatorNotAllowedInGraphError",
    "OutOfRangeError", "PermissionDeniedError", "ResourceExhaustedError", "TapeUseWarning",
    "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError",
]
