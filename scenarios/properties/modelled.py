"""Which keys of brokers, topics, producers and consumers are modelled, and under which name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sim.config import KEYS, Value, parse
from sim.errors import InputError

_TOPIC: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "flush.messages": "log.flush.interval.messages",
    "segment.bytes": "log.segment.bytes",
}
_PRODUCER: Final = (
    *("acks", "request.timeout.ms", "delivery.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms"),
    *("max.in.flight.requests.per.connection", "enable.idempotence", "metadata.max.age.ms"),
)
_CONSUMER: Final = ("auto.offset.reset", "fetch.max.wait.ms")
_ELR: Final = "eligible.leader.replicas.enable"
_BROKER: Final = [key for key in KEYS if not key.startswith("sim.") and key not in (*_PRODUCER, *_CONSUMER)]

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "broker": {**{key: key for key in _BROKER}, _ELR: "eligible.leader.replicas.version"},
    "topic": _TOPIC,
    "producer": {key: key for key in _PRODUCER},
    "consumer": {key: key for key in _CONSUMER},
}
"""Scope -> Kafka's key -> the key here. A producer's and a consumer's timeouts are one setting here, the producer's."""


def value(scope: str, key: str, text: str) -> Value:
    """The value of a modelled key, read as Kafka does: without blanks around it, numbers in digits only.

    Raises:
        InputError: it is not valid.
    """
    word = text.strip()
    name = NAMES[scope][key]
    if key == _ELR:
        if word.lower() not in ("true", "false"):
            raise InputError(f"{key} = {word!r} is not valid; one of: true, false")
        return int(word.lower() == "true")
    is_number = isinstance(KEYS[name].default, int) and not isinstance(KEYS[name].default, bool)
    if is_number and not word.removeprefix("-").removeprefix("+").isdecimal():
        raise InputError(f"{key} = {word!r} is not valid: a whole number is needed")
    return parse(name, word)
