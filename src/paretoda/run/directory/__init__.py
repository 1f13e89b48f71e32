"""A run's directory: its files, and how each is written and read."""
