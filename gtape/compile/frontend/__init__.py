"""From a call of a Python function to the trace that answers it."""
