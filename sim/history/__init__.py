"""The history of a run: its steps, and what listeners derive from them for checkers, metrics and coverage."""
