"""From batches of labels to the edge table: numbers for labels, sorted unique edges, label tables."""
