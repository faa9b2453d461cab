"""Prefect flows over the steps of a run."""
