"""Scalar graphs as text: one element in C++ and CUDA, whole arrays in NumPy."""
