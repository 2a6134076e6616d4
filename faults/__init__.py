"""Fault plans, kinds of fault, and the faults that a mode promises to survive.

Part of Highwater, a chaos testbed for Kafka's replication protocol.
"""

PART_OF = "highwater"
"""See `highwater.own_packages`."""
