"""How primitives are made of the compiler's nodes, by subject.

A rule answers with values of few kinds of nodes, or with None: then the op runs in Python, as a
step of the program. Of `softmax(transpose(x) @ w)`, x [3, 2] and w [3, 4], comes

    %2: float32[2,3] = view(%0)                 the transpose: strides, and no instruction
    %3: float32[2,4] = product(%2, %1)
    %4: float32[2,1] = max over 1(%3)           softmax is a composite, taken by its definition
    %5: float32[2,4] = subtract(%3, %4)
    %6: float32[2,4] = exp(%5)
    %7: float32[2,1] = sum over 1(%6)
    %8: float32[2,4] = divide(%6, %7)

of which all but the product becomes one loop over rows.
"""

from gtape.compile.lowering import (
    arithmetic,
    checks,
    indexing,
    moves,
    products,
    random,
    reductions,
    updates,
    windows,
)

__all__ = ["arithmetic", "checks", "indexing", "moves", "products", "random", "reductions",
           "updates", "windows"]
