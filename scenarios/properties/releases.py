"""A release of Kafka as a user names it: its mode, or the nearest one, and its defaults of modelled keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scenarios.properties import known
from scenarios.properties.modelled import NAMES, value
from sim.config import FOLLOWING, KEYS, Value, shown
from sim.protocol.modes import MODES, NO_RELEASE, Mode
from sim.protocol.rules import unmet

_ELR: Final = "eligible.leader.replicas.version"
_ELR_SINCE: Final = "4.1"
"""New clusters have the feature from metadata version 4.1-IV0 on."""
_RETRIES_SINCE: Final = "2.1"
_IDEMPOTENT: Final = "enable.idempotence"
_ACKS: Final = "acks"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_IN_FLIGHT_MAX: Final = 5
_NO_DEFAULT: Final = ("default.replication.factor",)
"""The creator of a topic chooses it; the scenario's own value stays."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release.

    Attributes:
        name: as the user named it.
        mode: the mode that models it, or the nearest one.
        notes: what the mode models if it is not this release, and what no setting expresses.
        defaults: modelled key -> the release's default, where Highwater's table has another value.
        absent: modelled keys that the release lacks.
    """

    name: str
    mode: Mode
    notes: tuple[str, ...]
    defaults: Mapping[str, Value]
    absent: tuple[str, ...]

    def differences(self, given: Mapping[str, Value]) -> str:
        """The defaults that differ from those of Highwater and apply, as words of a sentence; empty if none does.

        Args:
            given: the settings that the user sets, which have no default.
        """
        return ", ".join(
            f"{key} = {shown(found)} (Highwater's default: {shown(KEYS[key].default)})"
            for key, found in self.beside(given, {}).items()
        )

    def beside(self, given: Mapping[str, Value], own: Mapping[str, object]) -> dict[str, Value]:
        """The defaults of keys that neither the user sets (`given`) nor the scenario (`own`, with drawn values).

        A producer is idempotent by default only with acks=all and at most 5 requests in flight, as Kafka decides
        (ProducerConfig.postProcessAndValidateIdempotenceConfigs, from 3.0.1 on).
        """
        chosen = {key: found for key, found in self.defaults.items() if key not in given and key not in own}
        acks, requests = (
            given.get(key, own.get(key, chosen.get(key, KEYS[key].default))) for key in (_ACKS, _IN_FLIGHT)
        )
        if acks not in ("all", ("all",)) or not isinstance(requests, int) or requests > _IN_FLIGHT_MAX:
            chosen.pop(_IDEMPOTENT, None)
        return chosen


def find(name: str, control_plane: str = "") -> Release:
    """The release of a name such as ``3.9`` or ``2.6.1``.

    Args:
        name: a release, or a minor release, which stands for its first one that is modelled.
        control_plane: that of the user's brokers; empty: any.

    Raises:
        InputError: its keys are not known.
    """
    minor = known.minor(name)
    mode, note = _mode(name, minor, control_plane)
    defaults, absent = _defaults(minor)
    defaults = {key: found for key, found in defaults.items() if not unmet(KEYS[key].where, [mode.rules])}
    notes = [note] if note else []
    if known.minors().index(minor) < known.minors().index(_RETRIES_SINCE):
        notes.append(f"producers before {_RETRIES_SINCE} do not retry by default; here they do (retries)")
    return Release(name, mode, tuple(notes), defaults, absent)


def _mode(name: str, minor: str, control_plane: str) -> tuple[Mode, str]:
    """The newest mode of this release or an earlier one; the oldest one if all are later."""
    releases = [mode for mode in MODES.values() if mode.release != NO_RELEASE]
    fitting = [mode for mode in releases if control_plane in ("", mode.rules.control_plane)]
    fitting.sort(key=lambda mode: _numbers(mode.release))
    same = [mode for mode in fitting if f"{mode.release}.".startswith(f"{minor}.")]
    if same:
        chosen = same[0] if name == minor else ([mode for mode in same if _is_reached(mode, name)] or same)[-1]
        later = [mode.name for mode in same if mode is not chosen and _numbers(mode.release) > _numbers(chosen.release)]
        exact = name == minor or _numbers(chosen.release) == _numbers(name)
        note = "" if exact else f"{chosen.name} is Kafka {chosen.release}, the nearest modelled release to {name}"
        if name == minor and later:
            note = f"{chosen.name} is Kafka {chosen.release}; later ones of {minor}: {', '.join(later)}"
        return chosen, note
    before = [mode for mode in fitting if _numbers(mode.release) < _numbers(minor)]
    chosen = before[-1] if before else fitting[0]
    after = [mode for mode in fitting if _numbers(mode.release) > _numbers(minor)]
    plane = {"kraft": " under KRaft", "zookeeper": " under ZooKeeper"}.get(control_plane, "")
    note = (
        f"no mode is Kafka {minor}{plane}: {chosen.name} is Kafka {chosen.release}, the nearest modelled release before"
    )
    if not before:
        note = note.replace("before", "after")
    elif after:
        note += f"; the next one is {after[0].name}, Kafka {after[0].release}"
    return chosen, note


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]


def _is_reached(mode: Mode, name: str) -> bool:
    return _numbers(mode.release) <= _numbers(name)


def _defaults(minor: str) -> tuple[dict[str, Value], tuple[str, ...]]:
    found: dict[str, Value] = {}
    absent: list[str] = []
    for scope in ("broker", "producer", "consumer"):
        for key, name in NAMES[scope].items():
            text = known.default(scope, key, minor) if key in known.names(scope) else None
            if text is not None and key == name:
                found[name] = value(scope, key, text)
            elif key == name:
                absent.append(name)
    place = known.minors().index
    found[_ELR] = int(place(minor) >= place(_ELR_SINCE))
    if "retry.backoff.max.ms" in absent:  # Before KIP-580, every retry waits as long.
        found["retry.backoff.max.ms"] = found["retry.backoff.ms"]
    for name in _NO_DEFAULT:
        found.pop(name, None)
    differing = {key: found[key] for key in KEYS if key in found and found[key] != KEYS[key].default}
    return differing, tuple(name for name in absent if name not in found and name not in FOLLOWING)
