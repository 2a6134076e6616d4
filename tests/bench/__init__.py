"""What a run costs: `python -m tests.bench`."""
