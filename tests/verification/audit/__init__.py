"""Audits of metadata logs that Kafka's controller classes wrote in drawn histories, true and altered."""
