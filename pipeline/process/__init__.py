"""The process of a command, and the processes that it starts: start-up, log, signals."""
