"""What a terminal sees: commands, their options, and what they print."""
