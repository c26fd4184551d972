"""Functions of string tensors: `tf.strings`. They run on the host, as Python code."""
