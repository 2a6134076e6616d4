"""Hunting mutants of the protocol."""
