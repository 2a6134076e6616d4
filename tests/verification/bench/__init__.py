"""What a run costs: `python -m tests.verification.bench`."""
