"""Kinds of fault, a class each; `registry` lists them."""
