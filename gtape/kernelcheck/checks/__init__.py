"""Cases of every hand-written kernel against float64 NumPy, for any executor."""
