"""Cost of a run: `python -m tests.verification.bench`."""
