"""A GPU that is this machine's CPU: the real CuPy over CUDA of software, for tests and laptops."""
