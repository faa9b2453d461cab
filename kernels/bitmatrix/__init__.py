"""The bit-matrix engine, which runs on a GPU and is the fastest."""
