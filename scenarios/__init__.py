"""Scenario files, single runs, sweeps and their stores, shrinking.

Part of Highwater, a chaos testbed for Kafka's replication protocol.
"""

PART_OF = "highwater"
"""See `highwater.own_packages`."""
