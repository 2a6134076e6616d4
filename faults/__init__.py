"""Fault plans, one file for each kind of injector, and what a mode promises to survive."""
