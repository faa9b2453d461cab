"""What runs inside a worker: one slice after the other."""
