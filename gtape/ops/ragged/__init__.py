"""RaggedTensors: rows of different lengths, and the functions of them."""
