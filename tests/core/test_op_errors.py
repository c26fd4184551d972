"""Errors are made with a message, or as TensorFlow's are, and have its codes."""

from __future__ import annotations

import pickle

import pytest

import gtape as tf

_CODES = {
    "CancelledError": 1, "UnknownError": 2, "InvalidArgumentError": 3, "DeadlineExceededError": 4,
    "NotFoundError": 5, "AlreadyExistsError": 6, "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8, "FailedPreconditionError": 9, "AbortedError": 10,
    "OutOfRangeError": 11, "UnimplementedError": 12, "InternalError": 13, "UnavailableError": 14,
    "DataLossError": 15, "UnauthenticatedError": 16,
}


@pytest.mark.parametrize("name", _CODES)
@pytest.mark.parametrize("args", [("why",), (None, None, "why"), (None, None, "why", 3)])
def test_an_error_has_a_message_and_a_code(name: str, args: tuple[object, ...]) -> None:
    error = getattr(tf.errors, name)(*args)
    for found in (error, pickle.loads(pickle.dumps(error))):
        assert (str(found), found.message, found.error_code) == ("why", "why", _CODES[name])
        assert found.op is None and found.node_def is None


def test_an_error_without_a_message_is_empty() -> None:
    assert tf.errors.InvalidArgumentError().message == ""
