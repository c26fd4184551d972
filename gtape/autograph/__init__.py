"""AutoGraph: Python's control flow on traced tensors, by rewriting functions before a trace.

The method is that of Moldovan et al., AutoGraph: Imperative-style Coding with Graph-based
Performance, MLSys 2019 (arXiv:1810.08061): source to syntax tree to operators that choose, while
the function runs, between Python's behaviour and a node of the graph.
"""

from gtape.autograph import experimental
from gtape.autograph import operators as operators  # it fills convert.OPERATORS
from gtape.autograph.convert import convert, do_not_convert

__all__ = ["convert", "do_not_convert", "experimental"]
