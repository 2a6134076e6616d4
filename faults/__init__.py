"""Fault plans, kinds of fault, and the faults that a mode promises to survive."""
