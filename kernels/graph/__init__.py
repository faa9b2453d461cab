"""From an edge table to the graph that an engine searches: core, twins, root side, order."""
