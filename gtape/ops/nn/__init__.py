"""What neural networks are made of: activations, losses, windows, normalizations."""
