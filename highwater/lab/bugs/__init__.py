"""Bugs of Kafka that a release repaired: what shows each, or what Highwater lacks for it."""
