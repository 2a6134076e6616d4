"""Scenario files, running one seed, sweeping many, and storing what came out."""
