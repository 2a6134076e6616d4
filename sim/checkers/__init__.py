"""Checkers: one property each; every file says what it verifies and what it does not. `registry` lists them."""
