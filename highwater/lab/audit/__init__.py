"""A real cluster's metadata log: what it says, which partitions are at risk, which release writes its records."""
