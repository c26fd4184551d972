"""The ops: one declaration each, in files by subject."""
