"""Functions with Python's control flow, and arguments to call them with: plain values only."""

# What linters advise against is what a conversion must get right.
# ruff: noqa

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

CORPUS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = []


def on(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    def keep(fn: Any) -> Any:
        CORPUS.append((fn, list(calls)))
        return fn

    return keep


_N = [(n,) for n in range(-2, 9)]
total = 0


@on(*_N)
def early_returns(n):
    if n < 0:
        return "negative"
    if n == 0:
        return "zero"
    elif n < 3:
        return "few"
    return "many"


@on(*_N)
def falls_off_the_end(n):
    if n > 3:
        return n


@on(*_N)
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


@on(*_N)
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


@on(*_N)
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


@on(*_N)
def endless(n):
    while True:
        n += 1
        if n % 7 == 0:
            return n


@on(*_N)
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


@on(*_N)
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


@on(*_N)
def finally_overrides(n):
    try:
        if n:
            raise ValueError(n)
    finally:
        if n > 2:
            return "dropped"
    return "end"


@on(*_N)
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


@on(*_N)
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


@on(*_N)
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


@on(*_N)
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


@on(*_N)
def suppressed_return(n):
    with contextlib.suppress(ZeroDivisionError):
        return 1 // n
    return "suppressed"


@on(*_N)
def closures_bind_late(n):
    got = []
    for i in range(n):
        if i % 2:
            got.append(lambda: i)
        else:
            got.append(lambda i=i: i)
    return [f() for f in got]


@on(*_N)
def inner_nonlocal(n):
    count = 0

    def add(k):
        nonlocal count
        if k > 2:
            count += k
            return
        count -= 1

    for i in range(n):
        add(i)
    return count


@on(*_N)
def writes_global(n):
    global total
    total = 0
    for i in range(n):
        if i == 4:
            break
        total += i
    return total


@on((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))
def defaults(a, b=2, *rest, c=3, **more):
    if rest:
        return a, b, rest
    return (a, b, c, more) if a < b else "no"


@on((None,), (0,), ([],), ([1],), ("x",))
def truthiness(value):
    return (value or "or", value and "and", not value, "yes" if value else "no",
            value is None or not value, bool(value) if value is not None else None)


@on((1, 2, 3), (3, 2, 1), (1, 1, 2), (2, 5, 5))
def chains(a, b, c):
    return a < b < c, a <= b != c, a < b == c > 0, a in (b, c) != b, a < b in (c, 5)


@on(*_N)
def order_of_evaluation(n):
    log = []

    def seen(value):
        log.append(value)
        return value

    found = (seen(n) and seen(n - 1) or seen("or"),
             seen(1) if seen(n > 2) else seen(2),
             seen(1) < seen(n) < seen(5))
    if seen(n > 0) and seen(n < 5):
        seen("both")
    return found, log


@on(*_N)
def walrus(n):
    out = []
    while (m := n - 1) > 0:
        n = m
        out.append(m)
    if (k := n * 2) > 1 and (j := k + 1):
        out.append(j)
    out += [y for x in range(4) if (y := x * n) > 1]
    return out, m, k, (z := n) and z


@on(*_N)
def comprehensions(n):
    i = "untouched"
    a = [i * 2 if i % 2 else -i for i in range(n) if i != 3 and not i == 5]
    b = {i: (j for j in range(i) if j or i) for i in range(n)}
    return i, a, {k: list(v) for k, v in b.items()}, sum(i < 2 < 9 for i in range(n))


@on(*_N)
def deletes(n):
    x = n
    if n > 3:
        del x
    try:
        return x
    except NameError as error:
        return type(error).__mro__[-4].__name__


@on(*_N)
def unbound(n):
    if n > 3:
        y = n
    return y


@on(*_N)
def unbound_after_loop(n):
    for last in range(n):
        if last == 4:
            break
    return last


@on(*_N)
def raises_in_branch(n):
    if n > 5:
        raise ValueError(n)
    elif n == 3:
        assert n < 0, "three"
    return [1, 2, 3][n]


@on(*_N)
def matches(n):
    match n:
        case 0:
            return "zero"
        case int(k) if k < 0:
            found = k
        case 1 | 2:
            found = "few"
            if n == 2:
                return found
        case [*_]:
            found = "never"
        case other:
            found = other * 2
    return found


@on(*_N)
def match_in_loop(n):
    out = []
    for item in [0, (1, 2), {"a": 3}, "s", n]:
        match item:
            case (a, b):
                out.append(a + b)
                continue
            case {"a": a, **rest}:
                out.append((a, rest))
            case "s":
                if n > 3:
                    break
            case _:
                pass
        out.append(item)
    return out


@on(*_N)
def unpacks(n):
    d = {}
    for i, (a, *d["rest"]) in enumerate([(1, 2, 3), (4, 5)]):
        if i < n:
            d[i] = a
    return d


@on(*_N)
def stores_in_objects(n):
    class Box:
        value = 0

        def bump(self):
            if self.value > 2:
                self.value = -1
            self.value += 1
            return self

    box, items = Box(), [0] * 5
    for i in range(max(n, 0)):
        if i % 2:
            box.value += 1
        else:
            items[i % 5] += i
            box.bump()
    return box.value, items


@on(*_N)
def annotated(n: int):
    y: int
    z: float = 2.0
    if n:
        y: int = n
        return y * z
    return z


@on(*_N)
def imports_inside(n):
    if n > 2:
        import math as m
        from os import path
        return m.floor(2.5), path.join("a", "b")
    return n


@on((5,), (1,))
def recursion(n):
    return 1 if n <= 1 else n * recursion(n - 1)


@on(*_N)
def generator_inside(n):
    def count():
        for i in range(n):
            if i == 3:
                return
            yield i

    return list(count())


@on(*_N)
def conditional_definition(n):
    if n > 2:
        def f(x):
            return x + n if x else n
    else:
        f = lambda x: -x
    return f(3), f(0)


@on(*_N)
def starred_calls(n):
    def f(*args, **kwargs):
        return args, kwargs

    args = [i for i in range(n)]
    return f(*args, **({"k": n} if n > 2 else {}))


@on(*_N)
def nested_ifs_in_while_else(n):
    k = 0
    while k < n:
        k += 1
        if k == 4:
            if n == 7:
                return "seven"
            if n == 8:
                break
            continue
    else:
        if n < 3:
            return "short", k
    return k


@on(*_N)
def dead_code(n):
    return n
    n = 3
    if n:
        k = 2
    return k


@on(*_N)
def strings(n):
    """Its documentation."""
    return f"{n if n > 2 else 'small'!r:>{8 if n else 6}}" + ("a" if not n else "b")


@on((0,), (3,))
def exception_groups(n):
    log = []
    try:
        if n:
            raise ExceptionGroup("g", [ValueError(n), KeyError(n)])
    except* ValueError:
        log.append("value")
    except* KeyError:
        if n == 3:
            log.append("key")
    return log


@on(*_N)
def lambda_parameters(n):
    x = n
    f = lambda x, *y, k=2: x if x > k else (y or k)
    return f(n), f(x, 1), f(1, k=0)
