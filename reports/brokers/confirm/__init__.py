"""Scripted scenarios acted out on real brokers: Kafka's released processes on loopback, beside the simulation."""
