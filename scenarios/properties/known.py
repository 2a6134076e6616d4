"""The configuration keys of Kafka's releases, read from their classes: ``keys.json`` beside this file.

``python -m tests.verification.kafka_keys`` renews it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from sim.errors import InputError, did_you_mean

KEYS_VERSION: Final = 1
SCOPES: Final = ("broker", "topic", "producer", "consumer")
"""Who reads a key; of several scopes that know all keys of a file, the first is taken."""
_KIND: Final = {"broker": "a broker", "topic": "a topic", "producer": "a producer", "consumer": "a consumer"}


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads((files("scenarios.properties") / "keys.json").read_text("utf-8"))
    assert table["schema_version"] == KEYS_VERSION
    return table


@cache
def minors() -> tuple[str, ...]:
    """The minor releases whose keys are known, oldest first."""
    return tuple(release.rpartition(".")[0] for release in _table()["releases"])


def minor(release: str) -> str:
    """The minor release of a release such as ``3.9``, ``3.9.1`` or ``0.10.2.1``.

    Raises:
        InputError: its keys are not known.
    """
    for name in minors():
        if release == name or (release.startswith(f"{name}.") and release.removeprefix(f"{name}.").isdecimal()):
            return name
    if "," in release:
        raise InputError(f"--release {release!r}: one release is needed here")
    raise InputError(f"--release {release!r} is no release that Highwater knows{_instead(release)}")


def _instead(release: str) -> str:
    """The releases that a reader of 'is no release' may have meant: of a number, those that begin likewise."""
    major, _, _ = release.partition(".")
    if not major.isascii() or not major.isdigit():
        return did_you_mean(release, minors())
    alike = [name for name in minors() if name.startswith(f"{major}.")]
    return f"; one of: {', '.join(alike)}" if alike else f"; the newest one is {minors()[-1]}"


def place_of(release: str) -> int:
    """The place of a release's minor release in `minors`; raises InputError if it is not known."""
    return minors().index(minor(release))


def last_of(minor: str) -> str:
    """The last release of a minor release whose keys were read, such as 4.1.2 of 4.1."""
    found: str = _table()["releases"][minors().index(minor)]
    return found


def names(scope: str) -> dict[str, str]:
    """The keys of a scope, each with the spans of minor releases that have it: ``0.10.2..3.9``."""
    found: dict[str, str] = _table()["keys"][scope]
    return found


def readers(key: str) -> list[str]:
    """The scopes that have a key, in the words of a sentence."""
    return [_KIND[scope] for scope in SCOPES if key in names(scope)]


def has(scope: str, key: str, release: str) -> bool:
    """Whether a minor release has a key."""
    place = minors().index(release)
    spans = [span.split("..") for span in names(scope).get(key, "").split(", ") if span]
    return any(minors().index(first) <= place <= minors().index(last) for first, last in spans)


def default(scope: str, key: str, release: str) -> str | None:
    """The default of a modelled key in a minor release, as Kafka prints it; None if the release lacks the key."""
    if not has(scope, key, release):
        return None
    place = minors().index(release)
    changes: dict[str, str] = _table()["defaults"][scope][key]
    return [value for since, value in changes.items() if minors().index(since) <= place][-1]
