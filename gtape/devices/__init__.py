"""Where arrays live: finding devices, naming them, and choosing one for new tensors."""
