"""Random tensors, the streams that they are drawn from, and first values of variables."""
