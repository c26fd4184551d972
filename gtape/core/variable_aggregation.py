"""How the copies of a Variable are kept alike. gtape has one copy, so all of them say the same."""

from __future__ import annotations

import enum


class VariableAggregation(enum.Enum):
    """How updates of several replicas become one."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When the copies of a Variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3
