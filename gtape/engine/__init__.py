"""gtape as the engine of Keras: how it is bound, and TensorFlow's names that only Keras uses."""
