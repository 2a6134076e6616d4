"""Shrinks a failing run to the smallest one with the same violation and cause, and explains it."""
