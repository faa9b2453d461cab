"""The published GPU algorithm, to compare with."""
