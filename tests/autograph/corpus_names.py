"""Functions with closures, expressions, stores and definitions, and arguments for them."""

# What linters advise against is what a conversion must get right.
# ruff: noqa

from __future__ import annotations

from tests.autograph.corpus import NUMBERS, on

total = 0


@on(*NUMBERS)
def closures_bind_late(n):
    got = []
    for i in range(n):
        if i % 2:
            got.append(lambda: i)
        else:
            got.append(lambda i=i: i)
    return [f() for f in got]


@on(*NUMBERS)
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


@on(*NUMBERS)
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


@on(*NUMBERS)
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


@on(*NUMBERS)
def walrus(n):
    out = []
    while (m := n - 1) > 0:
        n = m
        out.append(m)
    if (k := n * 2) > 1 and (j := k + 1):
        out.append(j)
    out += [y for x in range(4) if (y := x * n) > 1]
    return out, m, k, (z := n) and z


@on(*NUMBERS)
def comprehensions(n):
    i = "untouched"
    a = [i * 2 if i % 2 else -i for i in range(n) if i != 3 and not i == 5]
    b = {i: (j for j in range(i) if j or i) for i in range(n)}
    return i, a, {k: list(v) for k, v in b.items()}, sum(i < 2 < 9 for i in range(n))


@on(*NUMBERS)
def deletes(n):
    x = n
    if n > 3:
        del x
    try:
        return x
    except NameError as error:
        return type(error).__mro__[-4].__name__


@on(*NUMBERS)
def unbound(n):
    if n > 3:
        y = n
    return y


@on(*NUMBERS)
def unbound_after_loop(n):
    for last in range(n):
        if last == 4:
            break
    return last


@on(*NUMBERS)
def raises_in_branch(n):
    if n > 5:
        raise ValueError(n)
    elif n == 3:
        assert n < 0, "three"
    return [1, 2, 3][n]


@on(*NUMBERS)
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


@on(*NUMBERS)
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


@on(*NUMBERS)
def unpacks(n):
    d = {}
    for i, (a, *d["rest"]) in enumerate([(1, 2, 3), (4, 5)]):
        if i < n:
            d[i] = a
    return d


@on(*NUMBERS)
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


@on(*NUMBERS)
def annotated(n: int):
    y: int
    z: float = 2.0
    if n:
        y: int = n
        return y * z
    return z


@on(*NUMBERS)
def imports_inside(n):
    if n > 2:
        import math as m
        from os import path
        return m.floor(2.5), path.join("a", "b")
    return n


@on((5,), (1,))
def recursion(n):
    return 1 if n <= 1 else n * recursion(n - 1)


@on(*NUMBERS)
def generator_inside(n):
    def count():
        for i in range(n):
            if i == 3:
                return
            yield i

    return list(count())


@on(*NUMBERS)
def conditional_definition(n):
    if n > 2:
        def f(x):
            return x + n if x else n
    else:
        f = lambda x: -x
    return f(3), f(0)


@on(*NUMBERS)
def starred_calls(n):
    def f(*args, **kwargs):
        return args, kwargs

    args = [i for i in range(n)]
    return f(*args, **({"k": n} if n > 2 else {}))


@on(*NUMBERS)
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


@on(*NUMBERS)
def dead_code(n):
    return n
    n = 3
    if n:
        k = 2
    return k


@on(*NUMBERS)
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


@on(*NUMBERS)
def lambda_parameters(n):
    x = n
    f = lambda x, *y, k=2: x if x > k else (y or k)
    return f(n), f(x, 1), f(1, k=0)
