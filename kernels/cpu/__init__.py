"""The CPU engine: first-level subtrees as local bit matrices, compiled by Numba, no GIL."""
