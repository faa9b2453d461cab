"""What a user reads of a run: its results, its status, its page."""
