"""gtape.errors: what operations raise, and the warnings of tapes."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.core.errors": """
        AbortedError AlreadyExistsError CacheWarning CancelledError ComplexCastWarning DataLossError
        DeadlineExceededError EagerFunctionWarning EngineError FailedPreconditionError
        GradientMismatch GradientNoneError GradientNoneWarning InternalError InvalidArgumentError
        KernelError NativeCodeWarning NonFloatWarning NotFoundError NotTraceableError OpError
        OperatorNotAllowedInGraphError OutOfRangeError PermissionDeniedError ResourceExhaustedError
        RetraceWarning TapeUseWarning UnauthenticatedError UnavailableError UnimplementedError
        UnknownError""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
