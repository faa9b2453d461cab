"""Compares two complete runs: which bicliques are gone, and which are new."""
