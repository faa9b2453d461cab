"""Random graphs to try a machine with, and what is known of them."""
