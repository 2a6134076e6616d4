"""Kafka's released jars, to compare with the simulator: fetched once, verified, and kept in the user's cache folder."""
