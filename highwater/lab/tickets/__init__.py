"""Tickets: a failure of Kafka, written for its developers."""
