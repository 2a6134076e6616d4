"""What happened in a run: its steps, and what follows from them for checkers, metrics and coverage."""
