"""What a value, an op, a tape and a trace are. Names no op and imports no device."""
