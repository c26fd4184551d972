"""Random programs, run in every way that gtape has, and cut down to the smallest that fails.

A program is data (`program.py`): what it is given, and lines of ops, conditionals, loops and
assignments. `generate.py` makes one from a seed, `elaborate.py` writes it as Python text for
tensors of its shapes, `compare.py` runs the text eagerly, as a native program, as a NumPy program
and with a compiled forward pass, and compares; `differences.py` holds its gradients against finite
differences; `reduce.py` makes what failed small, and `__main__.py` is the command:

    python -m tests.random_programs --seconds 75
    python -m tests.random_programs --sanitize --seconds 90
"""
