"""Real Kafka brokers: their releases, and scripted scenarios performed on them."""
