"""Scripted scenarios performed on real brokers (Kafka's releases on loopback), compared with the simulation."""
