"""Fault plans, one file for each kind of fault, and what a mode promises to survive."""
