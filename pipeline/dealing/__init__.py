"""Who gets which nodes: pure rules, which the driver follows for workers, and a worker for its threads."""
