"""Kafka's own brokers: their releases, and stories acted out on them."""
