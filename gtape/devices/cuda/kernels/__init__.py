"""Host functions of the hand-written kernels: they allocate, choose the geometry and launch."""
