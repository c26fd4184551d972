"""Array algorithms that need no tape: every function takes `xp` (numpy or cupy) and arrays."""
