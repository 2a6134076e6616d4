"""Checkers: one property per module, each stating what it verifies and what it does not. `registry` lists them."""
