"""Decisions of producers and consumers."""
