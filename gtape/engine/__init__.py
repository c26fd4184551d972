"""gtape as the engine of Keras: how it is bound, and the names of TensorFlow that only Keras uses."""
