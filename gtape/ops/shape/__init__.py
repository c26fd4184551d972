"""Tensors made, cast, moved and rearranged."""
