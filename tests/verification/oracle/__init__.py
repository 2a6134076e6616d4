"""Kafka's released classes beside the core, on the same operations; README.md tells how."""
