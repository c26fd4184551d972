"""The operators that converted functions call, by the name of `nodes.PREFIX`."""

import sys

from gtape.autograph.branches import (
    and_,
    chain,
    choose,
    eq,
    ge,
    gt,
    if_,
    in_,
    is_,
    is_not,
    le,
    lt,
    ne,
    not_in,
    or_,
)
from gtape.autograph.conditions import any_of, caught, none_of, not_
from gtape.autograph.convert import OPERATORS, callee
from gtape.autograph.looping import for_, iterator, while_
from gtape.autograph.state import State

__all__ = ["State", "and_", "any_of", "callee", "caught", "chain", "choose", "eq", "for_", "ge",
           "gt", "if_", "in_", "is_", "is_not", "iterator", "le", "lt", "ne", "none_of", "not_",
           "not_in", "or_", "while_"]

OPERATORS.cell_contents = sys.modules[__name__]
