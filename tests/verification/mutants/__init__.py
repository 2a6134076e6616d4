"""Mutants by program: plausible mistakes in one place of the simulator, and whether random runs find them."""
