"""Elements, rows and slices read and written by index, by mask and by order."""
