"""Estimates, before a run begins, how much memory, disk and time it would take."""
