"""Statistics and comparison of sweeps; evidence, pictures and films of runs; runs on real brokers."""
