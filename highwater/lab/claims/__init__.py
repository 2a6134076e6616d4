"""Sentences of Kafka that promise something about replicated data, and what runs say of each."""
