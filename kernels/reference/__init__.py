"""The definition, in plain Python sets: the yardstick of every other engine."""
