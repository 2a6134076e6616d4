"""Statistics, comparison, replay for reading, and the command line."""
