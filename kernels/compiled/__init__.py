"""What Numba compiles: how, and the small passes that are no engine."""
