"""Statistics and comparison of sweeps; evidence, pictures and films of runs.

Part of Highwater, a chaos testbed for Kafka's replication protocol.
"""

PART_OF = "highwater"
"""See `highwater.own_packages`."""
