"""Proposals of Kafka's developers as plug-ins, to review: ``--plugin highwater.proposals.kafka_19975``."""
