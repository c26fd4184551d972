"""The error that ends a command with a message and status 2."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot run; the message says what to do about it."""
