"""The first step: it makes the normalised edge table and the label tables of any edge list."""
