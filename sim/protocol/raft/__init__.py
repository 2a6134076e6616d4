"""Raft of the metadata quorum, as plain state machines: elections, replication by fetches, and the high watermark."""
