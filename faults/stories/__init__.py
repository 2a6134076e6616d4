"""Random plans, from single faults and from patterns of several."""
