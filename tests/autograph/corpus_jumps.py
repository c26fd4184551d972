"""Functions with jumps in every kind of statement, and arguments for them: plain values only."""

# What linters advise against is what a conversion must get right.
# ruff: noqa

from __future__ import annotations

import contextlib

from tests.autograph.corpus import NUMBERS, on


@on(*NUMBERS)
def early_returns(n):
    if n < 0:
        return "negative"
    if n == 0:
        return "zero"
    elif n < 3:
        return "few"
    return "many"


@on(*NUMBERS)
def falls_off_the_end(n):
    if n > 3:
        return n


@on(*NUMBERS)
def nested_choice_with_partial_returns(n):
    log = []
    if n % 2:
        log.append("odd")
        if n > 4:
            return log, "big"
        log.append("small")
    else:
        log.append("even")
        if n == 2:
            return log
    log.append("behind")
    return log


@on(*NUMBERS)
def for_with_everything(n):
    seen = []
    for i in range(n):
        if i == 1:
            continue
        if i == 5:
            break
        if i == 4 and n == 5:
            return "returned", seen
        seen.append(i)
    else:
        seen.append("else")
    return seen


@on(*NUMBERS)
def while_with_else(n):
    steps = []
    while n > 0:
        n -= 1
        if n == 3:
            continue
        if n == 6:
            break
        steps.append(n)
    else:
        steps.append("else")
    return n, steps


@on(*NUMBERS)
def endless(n):
    while True:
        n += 1
        if n % 7 == 0:
            return n


@on(*NUMBERS)
def endless_with_break(n):
    while True:
        n += 3
        if n > 10:
            break
    return n


@on((3, 3), (5, 2), (0, 4), (4, 0))
def loops_in_loops(rows, columns):
    found = []
    for i in range(rows):
        for j in range(columns):
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            found.append((i, j))
        else:
            found.append(("full", i))
            continue
        if i == 3:
            break
    else:
        found.append("all")
    return found


@on((3,), (0,), (9,))
def return_from_inner_loop(n):
    for i in range(n):
        k = 0
        while k < 10:
            k += 1
            if i * k == 6:
                return i, k
    return None


@on(*NUMBERS)
def try_finally(n):
    log = []
    try:
        if n > 3:
            return log
        log.append(10 // n)
        if n == 2:
            return log
    except ZeroDivisionError as error:
        log.append(str(error))
        if n == 0:
            return log
    else:
        log.append("else")
    finally:
        log.append("finally")
    log.append("behind")
    return log


@on(*NUMBERS)
def finally_overrides(n):
    try:
        if n:
            raise ValueError(n)
    finally:
        if n > 2:
            return "dropped"
    return "end"


@on(*NUMBERS)
def continue_in_finally(n):
    kept = []
    for i in range(n):
        try:
            if i == 2:
                raise KeyError(i)
            kept.append(i)
        finally:
            if i == 2:
                continue
        kept.append("end")
    return kept


@on(*NUMBERS)
def break_out_of_try(n):
    log = []
    for i in range(n):
        try:
            if i == 3:
                break
            if i == 1:
                continue
            log.append(i)
        finally:
            log.append(("finally", i))
    return log


@on(*NUMBERS)
def nested_handlers(n):
    try:
        try:
            if n == 1:
                raise KeyError("k")
            if n == 2:
                raise ValueError("v")
            return n
        except KeyError:
            raise
        except ValueError as error:
            raise TypeError("t") from error
    except TypeError as error:
        return type(error.__cause__).__name__


@on(*NUMBERS)
def context_managers(n):
    log = []

    @contextlib.contextmanager
    def entered(name):
        log.append(f"+{name}")
        try:
            yield name
        finally:
            log.append(f"-{name}")

    with entered("a") as a, entered("b"):
        log.append(a)
        if n > 3:
            return log
        with contextlib.suppress(ZeroDivisionError):
            log.append(6 // n)
            if n == 2:
                return log
        log.append("behind")
    log.append("outside")
    return log


@on(*NUMBERS)
def suppressed_return(n):
    with contextlib.suppress(ZeroDivisionError):
        return 1 // n
    return "suppressed"
