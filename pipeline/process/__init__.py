"""The process that a command runs in, and those it starts: start-up, log, signals."""
