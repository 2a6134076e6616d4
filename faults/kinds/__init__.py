"""Kinds of fault, one file each."""
