"""Kafka's replication rules as plain state machines: no clock, no chance, no I/O."""
