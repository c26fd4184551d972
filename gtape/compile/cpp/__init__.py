"""Plans as C++, compiled, bound to memory and called."""
