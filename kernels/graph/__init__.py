"""From an edge table to the graph an engine searches: core, twins, root side, order."""
