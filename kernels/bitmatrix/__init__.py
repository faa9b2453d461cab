"""The bit-matrix engine: the fastest one, on a GPU."""
