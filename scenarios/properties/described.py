"""Reads what ``kafka-configs.sh --describe`` and ``kafka-topics.sh --describe`` print about one broker or topic."""

from __future__ import annotations

import re
from typing import Final

from scenarios.properties.java_properties import PropertyEntry
from sim.errors import InputError

_HEAD: Final = re.compile(
    r"(?:Dynamic configs|All configs|Configs|Default configs|Quota configs|SCRAM credential configs)\s+for\s+"
    r"(?P<entity>[\w-]+)(?P<name>.*?)\s+are:?(?P<rest>.*)",
    re.IGNORECASE,
)
_ROW: Final = re.compile(r"\s+(?P<key>[\w.-]+)=(?P<value>.*) sensitive=(?P<sensitive>true|false) synonyms=\{.*\}\s*")
_TOPIC: Final = re.compile(r"Topic:\s*(?P<name>\S+)\s.*\bConfigs:\s*(?P<rest>\S*)")
_PAIR: Final = re.compile(r"([a-z][\w.]*)=(.*?)(?=,[a-z][\w.]*=|$)")
"""A pair of a list; its value may contain commas."""
_SCOPES: Final = {"topic": "topic", "topics": "topic", "broker": "broker", "brokers": "broker"}


def parse(text: str) -> tuple[str, list[PropertyEntry]] | None:
    """The scope (topic or broker) and the entries; None if the text is something else.

    Raises:
        InputError: it describes several topics or brokers, or users, clients or groups.
    """
    found: list[PropertyEntry] = []
    described: dict[tuple[str, str], None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        topic = _TOPIC.match(line)
        head = topic or _HEAD.match(line)
        if head is not None:
            scope = "topic" if topic else _SCOPES.get(head["entity"].lower(), "")
            if not scope:
                raise InputError(f"it describes {head['entity']!r}; the settings of a topic or broker are needed")
            described[scope, head["name"].strip(" '\"")] = None
            found += [PropertyEntry(key, value, number) for key, value in _PAIR.findall(head["rest"].strip())]
        elif described and (row := _ROW.fullmatch(line)) is not None and row["sensitive"] == "false":
            found.append(PropertyEntry(row["key"], row["value"], number))
        elif not described and line.strip() and line.lstrip()[0] not in "#!":
            return None
    if not described:
        return None
    if len(described) > 1:
        raise InputError(f"it describes {len(described)} topics or brokers; describe one of them")
    ((scope, _),) = described
    return scope, [entry for entry in found if entry.value != "null"]
