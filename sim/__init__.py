"""The simulated world: brokers, links, disks, clients and the checkers that watch them.

Part of Highwater, a chaos testbed for Kafka's replication protocol.
"""

PART_OF = "highwater"
"""See `highwater.own_packages`."""
