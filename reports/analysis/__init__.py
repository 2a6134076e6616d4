"""What a sweep says: rates, intervals, paired tests, coverage."""
