"""gtape on a GPU beside torch and JAX; ../README.md says how to run it and what it measures."""
