"""NVIDIA GPUs through CuPy. Imported only when a GPU is looked for."""
