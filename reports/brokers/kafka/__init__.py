"""Kafka's own releases, to be run beside the simulator: fetched once, checked, and kept in the user's cache folder."""
