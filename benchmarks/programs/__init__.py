"""The programs that are timed, the same mathematics for every peer, and the process they run in."""
