"""The output of Kafka's tools is read as settings of one topic or broker."""

from __future__ import annotations

import pytest

from scenarios.properties.described import parse
from scenarios.properties.java_properties import PropertyEntry
from sim.errors import InputError


def test_output_of_kafka_configs() -> None:
    text = (
        "All configs for topic orders are:\n"
        "  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=2, "
        "DEFAULT_CONFIG:min.insync.replicas=1}\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms={}\n"
        "  flush.ms=null sensitive=false synonyms={}\n"
    )
    assert parse(text) == (
        "topic",
        [PropertyEntry("min.insync.replicas", "2", 2), PropertyEntry("cleanup.policy", "compact,delete", 3)],
    )


def test_sensitive_values_are_left_out() -> None:
    text = (
        "Dynamic configs for broker 1 are:\n"
        "  ssl.keystore.password=null sensitive=true synonyms={}\n"
        "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2}\n"
    )
    assert parse(text) == ("broker", [PropertyEntry("log.cleaner.threads", "2", 3)])


def test_output_before_kafka_2_5() -> None:
    text = "Configs for topic 'orders' are cleanup.policy=compact,delete,min.insync.replicas=2\n"
    assert parse(text) == (
        "topic",
        [PropertyEntry("cleanup.policy", "compact,delete", 1), PropertyEntry("min.insync.replicas", "2", 1)],
    )


def test_output_of_kafka_topics() -> None:
    text = (
        "Topic: orders\tTopicId: Zw\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,"
        "segment.bytes=1073741824\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
    )
    assert parse(text) == (
        "topic",
        [PropertyEntry("min.insync.replicas", "2", 1), PropertyEntry("segment.bytes", "1073741824", 1)],
    )


def test_other_text_is_not_of_these_tools() -> None:
    assert parse("broker.id=1\nTopic: a\n") is None
    assert parse("# a comment\n\n") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Dynamic configs for broker 1 are:\nDynamic configs for broker 2 are:\n", "it describes 2 topics or brokers"),
        ("SCRAM credential configs for user-principal 'a' are SCRAM-SHA-256=iterations=8192\n", "'user-principal'"),
        ("Quota configs for client-id 'a' are producer_byte_rate=1\n", "'client-id'"),
    ],
)
def test_what_is_of_no_single_topic_or_broker_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse(text)
