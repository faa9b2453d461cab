"""Copies a complete run to another place, so that other programs never take a part of it for all of it."""
