"""The CPU engine searches first-level subtrees as local bit matrices. Numba compiles it, and it releases the GIL."""
