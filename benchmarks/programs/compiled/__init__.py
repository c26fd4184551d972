"""The workloads that every peer compiles: forward and gradients, or a whole training step."""
