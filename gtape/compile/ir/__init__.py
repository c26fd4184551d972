"""The compiler's form of a graph, and how traced graphs are lowered to it."""
