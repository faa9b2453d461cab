"""The definition in plain Python sets. Every other engine is compared with it."""
