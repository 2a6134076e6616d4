"""One replica's log, its leader epochs, and its state of idempotent producers."""
