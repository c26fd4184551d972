"""Cutting work along its first axis so that temporaries stay small."""

from collections.abc import Iterator
from types import ModuleType

#: A small part of any card's memory, in as few launches as that allows.
DEVICE_LIMIT = 1 << 30


def blocks(xp: ModuleType, count: int, bytes_each: int, host_limit: int) -> Iterator[slice]:
    """Slices of `count` rows, of which each slice needs at most `host_limit` bytes on the host,
    or DEVICE_LIMIT on a device, where a launch costs more than a cache miss."""
    limit = host_limit if xp.__name__ == "numpy" else DEVICE_LIMIT
    step = max(limit // max(bytes_each, 1), 1)
    for start in range(0, count, step):
        yield slice(start, start + step)
