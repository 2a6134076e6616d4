"""Kafka's replication protocol as plain state machines: no clock, no randomness, no I/O."""
