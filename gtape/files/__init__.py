"""The file formats that programs read and write: what `tf.io`, `tf.audio`, `tf.train.Example`,
`tf.summary` and the readers of `tf.data` share. Nothing here runs what a file says, and no length
that a file claims is believed before it is compared with the bytes that are there."""
