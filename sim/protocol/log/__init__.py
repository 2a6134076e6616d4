"""One replica's log, its leader epochs, and what it says of idempotent producers."""
