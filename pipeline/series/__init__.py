"""Runs that follow one another as nights do: which there are, which is the latest, which can go."""
