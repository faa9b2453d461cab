"""The calls of the Python API: mine, open, resume, verify and count, and estimate by a dry run."""
