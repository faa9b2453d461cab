"""Runs that follow one another, as one per night: which there are, which is the latest, which can be removed."""
