"""Workers: what happens to a claimed job between its message and `done`."""
