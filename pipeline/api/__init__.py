"""What can be asked of the project from Python: mine, open, resume, verify, count, and look ahead."""
