"""Which keys of brokers, topics, producers and consumers are modelled, and under which name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sim.config import KEYS, Value, is_of_form, parse
from sim.errors import ALIKE, InputError, nearest

_TOPIC: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "segment.bytes": "log.segment.bytes",
}
_PRODUCER: Final = (
    *("acks", "request.timeout.ms", "delivery.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms"),
    *("max.in.flight.requests.per.connection", "enable.idempotence", "metadata.max.age.ms"),
)
_CONSUMER: Final = ("auto.offset.reset", "fetch.max.wait.ms")
_ELR: Final = "eligible.leader.replicas.enable"
OF_GROUPS: Final = (
    *("enable.auto.commit", "auto.commit.interval.ms", "offsets.topic.replication.factor", "offsets.commit.timeout.ms"),
)
"""Only scenarios ask for them: elsewhere, groups commit to an ideal store."""
_BROKER: Final = [key for key in KEYS if not key.startswith("sim.") and key not in (*_PRODUCER, *_CONSUMER, *OF_GROUPS)]

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "broker": {**{key: key for key in _BROKER}, _ELR: "eligible.leader.replicas.version"},
    "topic": _TOPIC,
    "producer": {key: key for key in _PRODUCER},
    "consumer": {key: key for key in _CONSUMER},
}
"""Scope -> Kafka's key -> the key here. A producer's and a consumer's timeouts are one setting here, the producer's."""

_HARMLESS: Final = re.compile(r"[+-]?[0-9][0-9_.,]{0,18} ?[a-z]{0,2}|[a-z]{0,3}", re.ASCII | re.IGNORECASE)
"""A number, perhaps with a unit, or at most three letters."""


def is_unset(name: str, text: str) -> bool:
    """Whether a key without a default, in whose place another key decides, is not set: ``kafka-configs.sh --describe
    --all`` prints ``null``.
    """
    return name == "log.flush.interval.ms" and text.strip() in ("", "null")


def value(scope: str, key: str, text: str) -> Value:
    """The value of a modelled key, read as Kafka does: without blanks around it, numbers in digits only.

    Raises:
        InputError: it is not valid. The message repeats it only if it can hardly be a password on the wrong line: a
            number, three letters, or a word that is like a valid one.
    """
    word = text.strip()
    name = NAMES[scope][key]
    if is_unset(name, text):
        return KEYS[name].default
    if is_of_form(KEYS[name], word):
        return word
    choices = ("true", "false") if key == _ELR else _choices(name)
    if not _HARMLESS.fullmatch(word) and not nearest(word.lower(), choices, ALIKE):
        needed = f"one of: {', '.join(choices)}" if choices else "a whole number is needed"
        raise InputError(f"{key}: the value is not valid; {needed} (it is not shown, because it may be a secret)")
    if key == _ELR:
        if word.lower() not in choices:
            raise InputError(f"{key} = {word!r} is not valid; one of: {', '.join(choices)}")
        return int(word.lower() == "true")
    if not choices and not word.removeprefix("-").removeprefix("+").isdecimal():
        raise InputError(f"{key} = {word!r} is not valid: a whole number is needed")
    return parse(name, word)


def _choices(name: str) -> tuple[str, ...]:
    """The valid words of a key; none for a number."""
    if KEYS[name].choices:
        return (*KEYS[name].choices, *filter(None, [KEYS[name].form]))
    return ("true", "false") if isinstance(KEYS[name].default, bool) else ()
