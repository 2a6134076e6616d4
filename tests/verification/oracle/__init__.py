"""Compares Kafka's released classes with the core, on the same operations: see README.md."""
