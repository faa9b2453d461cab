"""Makes the edge table of batches of labels: numbers for labels, sorted unique edges, label tables."""
