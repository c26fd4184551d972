"""`tf.autograph.experimental`: what TensorFlow keeps there."""

from gtape.autograph.convert import do_not_convert

__all__ = ["do_not_convert"]
