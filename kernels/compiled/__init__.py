"""How Numba compiles, and small compiled passes that belong to no engine."""
