"""Scenario files, single runs, sweeps and their stores, shrinking."""
