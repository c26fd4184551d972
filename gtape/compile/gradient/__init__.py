"""Forward and backward programs of one trace, and the record of a call on tapes."""
