"""What a user sees of a run: its results, its status and its page."""
