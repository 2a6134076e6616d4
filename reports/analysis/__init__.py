"""Analysis of sweeps: rates, intervals, paired tests, coverage."""
