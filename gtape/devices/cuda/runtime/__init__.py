"""One GPU: its memory, its compiler, its launches."""
