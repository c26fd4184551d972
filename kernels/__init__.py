"""CUDA sources that ship with gtape, read through `importlib.resources.files("gtape._kernels")`."""
