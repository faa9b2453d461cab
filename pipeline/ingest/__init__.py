"""The first step: any edge list in, the normalised edge table and the label tables out."""
