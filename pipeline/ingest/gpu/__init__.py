"""Ingest on a GPU: reading with cuDF, and sorting and numbering on the device."""
